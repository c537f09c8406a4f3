# Optional native libraries: oneDNN (convolutions, large matrix products), behind a library of its own. What is not found
# costs speed, never a feature. LAPACK out of OpenBLAS is looked for at run time: csrc/kernels/providers/lapack_library.h.
add_library(flambeau_providers INTERFACE)
target_link_libraries(flambeau_providers INTERFACE ${CMAKE_DL_LIBS})

if(FLAMBEAU_ONEDNN)
  find_path(ONEDNN_INCLUDE oneapi/dnnl/dnnl.hpp)
  find_library(ONEDNN_LIBRARY NAMES dnnl)
  if(ONEDNN_INCLUDE AND ONEDNN_LIBRARY)
    set(onednn_found yes)
  endif()
endif()

message(STATUS "flambeau: oneDNN ${onednn_found}")
