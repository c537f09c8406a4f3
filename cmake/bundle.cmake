# What a wheel carries (FLAMBEAU_BUNDLE): every library that the extension or oneDNN needs and that a Linux with
# glibc does not have for certain, in flambeau/_libs, each with the licence of the package it comes from.
#
# The names stay as they are. Kernels that `flambeau.compile` makes are linked to libgomp.so.1, and the loader takes the one
# that is there under that name: a process has one pool of threads. Renamed, as wheels often do it, there would be two
# (docs/design/dependencies.md says what is wrong with that).
#
# DT_RPATH, not DT_RUNPATH: it holds for the libraries of a library too, and so those of oneDNN need no change.
if(FLAMBEAU_BUNDLE)
  # libflambeau is itself installed, so that what counts is what it needs.
  set(bundled_modules "$<TARGET_FILE:flambeau>" "$<TARGET_FILE:_C>")
  set(bundling_targets flambeau)
  if(TARGET _onednn)
    list(APPEND bundled_modules "$<TARGET_FILE:_onednn>")
    list(APPEND bundling_targets _onednn)
  endif()
  foreach(target ${bundling_targets})
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN/../_libs")
    target_link_options(${target} PRIVATE -Wl,--disable-new-dtags)
  endforeach()
  set_target_properties(_C PROPERTIES INSTALL_RPATH "$ORIGIN/lib;$ORIGIN/_libs")
  target_link_options(_C PRIVATE -Wl,--disable-new-dtags)
  install(CODE "
    file(GET_RUNTIME_DEPENDENCIES MODULES ${bundled_modules} RESOLVED_DEPENDENCIES_VAR found
         PRE_EXCLUDE_REGEXES \"^lib(c|m|dl|pthread|rt|stdc\\\\+\\\\+|gcc_s|flambeau)\\\\.so\" \"^ld-linux\")
    set(to \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/flambeau/_libs\")
    file(MAKE_DIRECTORY \"\${to}\")
    foreach(library \${found})
      file(REAL_PATH \"\${library}\" real)
      get_filename_component(name \"\${library}\" NAME)
      message(STATUS \"Bundling: \${real} as \${name}\")
      file(COPY_FILE \"\${real}\" \"\${to}/\${name}\")
      execute_process(COMMAND \"${CMAKE_SOURCE_DIR}/scripts/licence.sh\" \"\${real}\" OUTPUT_FILE \"\${to}/\${name}.licence.txt\"
                      RESULT_VARIABLE failed)
      if(failed)
        message(FATAL_ERROR \"no licence found for \${real}, which a wheel would carry\")
      endif()
    endforeach()")
endif()
