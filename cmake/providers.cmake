# Optional native libraries: oneDNN (convolutions, large matrix products), behind a library of its own, and LAPACK out of
# OpenBLAS. What is not found costs speed, never a feature.
add_library(flambeau_providers INTERFACE)
target_link_libraries(flambeau_providers INTERFACE ${CMAKE_DL_LIBS})

if(FLAMBEAU_ONEDNN)
  find_path(ONEDNN_INCLUDE oneapi/dnnl/dnnl.hpp)
  find_library(ONEDNN_LIBRARY NAMES dnnl)
  if(ONEDNN_INCLUDE AND ONEDNN_LIBRARY)
    set(onednn_found yes)
  endif()
endif()

if(FLAMBEAU_OPENBLAS)
  execute_process(COMMAND ${Python_EXECUTABLE} -c
                  "import scipy_openblas32 as s; print(s.get_lib_dir(), s.get_include_dir(), s.get_library(), sep=';')"
                  OUTPUT_VARIABLE openblas OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    list(GET openblas 0 openblas_lib)
    list(GET openblas 2 openblas_name)
    # Opened on first use: loading it starts its threads, and importing must start none.
    file(GLOB openblas_file ${openblas_lib}/lib${openblas_name}.so*)
    set_source_files_properties(csrc/kernels/providers/lapack.cpp PROPERTIES SKIP_PRECOMPILE_HEADERS ON
                                COMPILE_DEFINITIONS FB_OPENBLAS_LIBRARY="${openblas_file}")
    set(openblas_found yes)
  endif()
endif()

message(STATUS "flambeau: oneDNN ${onednn_found}, OpenBLAS ${openblas_found}")
