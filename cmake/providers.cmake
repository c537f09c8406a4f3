# An optional native library, behind a library of our own: oneDNN (convolutions, large matrix products), without which
# there is less speed and no feature less. LAPACK out of OpenBLAS is looked for at run time:
# csrc/kernels/providers/lapack_library.h.
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
