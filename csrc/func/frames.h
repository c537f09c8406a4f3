// Frames of derivatives: while `grad`, `vjp` or `jvp` runs a function, what the function captured
// is not the transform's to change. See Note [Ages of storages] in core/storage.h. The derivatives
// themselves need no frame, see Note [Levels] in func/vmap.h.
#pragma once

#include <vector>

#include "core/tensor.h"

namespace flambeau::func {

class Frame;

// Between both, changes of memory that is older than the frame and not that of `given` are refused.
Frame* enter_frame(const Tensors& given);
void leave_frame(Frame* frame) noexcept;
// Was it made inside of the innermost frame?
bool is_made_inside(const Tensor& x) noexcept;
// Does a transform (a frame, or vmap) run on this thread?
bool inside_transform() noexcept;
// Error(Runtime) there.
void refuse_inside(const char* what, const char* instead);

}  // namespace flambeau::func
