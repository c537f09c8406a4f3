# find_package(Flambeau): the target Flambeau::flambeau, and the variables that find_package(Torch) sets. Paths are those of
# the package that this file lies in (`python -c "import flambeau; print(flambeau.utils.cmake_prefix_path)"`).
get_filename_component(FLAMBEAU_INSTALL_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../.." REALPATH)
set(FLAMBEAU_INCLUDE_DIRS "${FLAMBEAU_INSTALL_PREFIX}/include")
set(FLAMBEAU_LIBRARY "${FLAMBEAU_INSTALL_PREFIX}/lib/libflambeau.so")
foreach(part "${FLAMBEAU_INCLUDE_DIRS}/flambeau/flambeau.h" "${FLAMBEAU_LIBRARY}")
  if(NOT EXISTS "${part}")
    set(Flambeau_FOUND FALSE)
    set(Flambeau_NOT_FOUND_MESSAGE "the package at ${FLAMBEAU_INSTALL_PREFIX} is not built: it has no ${part}")
    return()
  endif()
endforeach()

if(NOT TARGET Flambeau::flambeau)
  add_library(Flambeau::flambeau SHARED IMPORTED)
  set_target_properties(Flambeau::flambeau PROPERTIES
    IMPORTED_LOCATION "${FLAMBEAU_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${FLAMBEAU_INCLUDE_DIRS}"
    INTERFACE_COMPILE_FEATURES cxx_std_20)
endif()
set(FLAMBEAU_LIBRARIES Flambeau::flambeau)
set(Flambeau_FOUND TRUE)
