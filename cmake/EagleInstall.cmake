# What `cmake --install` puts where, and the packages made of it (CPack). Everything is found from where it lies, so that
# an installation may be moved: programs find the helper by their own place, the CMake package its files by its own.
#
# Components: daemon (eagled, eaglectl, the compile helper, units, manual), library (libeagle.so), dev (headers, CMake and
# pkg-config packages), python3 (the package, for the interpreter of the build). `python` is what scikit-build-core
# makes a wheel of, and is installed by name only.
include(CMakePackageConfigHelpers)

set(eagle_libexec libexec/eagle)

# One shared library for C++ programs: the client with its engine. Its headers show nothing of what it is made with, and
# it exports nothing of it.
set(parts eagle_client eagle_engine eagle_device_run eagle_cuda eagle_diff eagle_step eagle_run eagle_codegen eagle_view eagle_graph eagle_plane eagle_kernel_diff eagle_kernel
  eagle_base eagle_ring eagle_health eagle_proto eagle_rpc eagle_rpc_error)
list(TRANSFORM parts REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
add_library(eagle_shared SHARED ${objects})
set_target_properties(eagle_shared PROPERTIES
  OUTPUT_NAME eagle
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  EXPORT_NAME client
  LINKER_LANGUAGE CXX
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/eagle.symbols)
target_link_options(eagle_shared PRIVATE
  -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/eagle.symbols -Wl,--no-undefined)
target_link_libraries(eagle_shared PRIVATE
  eagle_grpc eagle_protobuf eagle_crypto OpenMP::OpenMP_CXX Threads::Threads ${CMAKE_DL_LIBS})
target_include_directories(eagle_shared INTERFACE $<INSTALL_INTERFACE:include/eagled>)
target_compile_features(eagle_shared INTERFACE cxx_std_20)
if(EAGLE_PORTABLE)
  set_target_properties(eagle_shared PROPERTIES INSTALL_RPATH $ORIGIN)
  set_target_properties(eagled eaglectl PROPERTIES INSTALL_RPATH $ORIGIN/../${CMAKE_INSTALL_LIBDIR})
  # What the library and the Python module need beside glibc and the C++ runtime.
  set(brought RUNTIME_DEPENDENCY_SET eagle_brought)
  install(RUNTIME_DEPENDENCY_SET eagle_brought
    PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread|stdc\\+\\+|gcc_s)[.]so"
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
endif()

# The public headers and whatever they include of the engine, found by reading them.
function(eagle_public_headers out)
  file(GLOB_RECURSE pending RELATIVE ${PROJECT_SOURCE_DIR}/client/include ${PROJECT_SOURCE_DIR}/client/include/*.h)
  set(found)
  while(pending)
    list(POP_FRONT pending header)
    if(header IN_LIST found)
      continue()
    endif()
    set(path ${PROJECT_SOURCE_DIR}/client/include/${header})
    if(NOT EXISTS ${path})
      set(path ${PROJECT_SOURCE_DIR}/${header})
    endif()
    if(NOT EXISTS ${path})
      message(FATAL_ERROR "a public header includes ${header}, which is none of the engine's: nothing else may be shown")
    endif()
    list(APPEND found ${header})
    get_filename_component(folder ${header} DIRECTORY)
    install(FILES ${path} DESTINATION include/eagled/${folder} COMPONENT dev)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
    file(STRINGS ${path} lines REGEX "^#include \"")
    foreach(line ${lines})
      string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" included "${line}")
      list(APPEND pending ${included})
    endforeach()
  endwhile()
  set(${out} ${found} PARENT_SCOPE)
endfunction()
eagle_public_headers(public_headers)

install(TARGETS eagled eaglectl RUNTIME DESTINATION bin COMPONENT daemon)
install(TARGETS eagle-compile RUNTIME DESTINATION ${eagle_libexec} COMPONENT daemon)
set(units deploy/systemd)
install(FILES ${units}/eagled.service ${units}/eagled.socket DESTINATION lib/systemd/system COMPONENT daemon)
install(FILES ${units}/eagled.sysusers DESTINATION lib/sysusers.d RENAME eagled.conf COMPONENT daemon)
install(FILES ${units}/eagled.tmpfiles DESTINATION lib/tmpfiles.d RENAME eagled.conf COMPONENT daemon)
install(FILES ${units}/eagled.toml DESTINATION share/eagled COMPONENT daemon)
install(FILES ${units}/gpu.conf DESTINATION share/eagled COMPONENT daemon)
install(DIRECTORY docs/manual DESTINATION share/doc/eagled COMPONENT daemon)
install(FILES CHANGELOG.md README.md DESTINATION share/doc/eagled COMPONENT daemon)
install(DIRECTORY proto/eagle DESTINATION share/eagled/proto COMPONENT dev FILES_MATCHING PATTERN "*.proto")

install(TARGETS eagle_shared EXPORT eagle ${brought}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT dev)
set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/eagle)
install(EXPORT eagle NAMESPACE eagle:: FILE eagleTargets.cmake DESTINATION ${config_folder} COMPONENT dev)
configure_package_config_file(cmake/eagleConfig.cmake.in ${CMAKE_BINARY_DIR}/eagleConfig.cmake
  INSTALL_DESTINATION ${config_folder})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/eagleConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/eagleConfig.cmake ${CMAKE_BINARY_DIR}/eagleConfigVersion.cmake
  DESTINATION ${config_folder} COMPONENT dev)
file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/eagle.pc.in ${CMAKE_BINARY_DIR}/eagle.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/eagle.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)

if(EAGLE_PYTHON)
  set(package lib/python3/dist-packages)
  if(EAGLE_PORTABLE)
    set_target_properties(_core PROPERTIES INSTALL_RPATH $ORIGIN/../../../../${CMAKE_INSTALL_LIBDIR})
  endif()
  install(TARGETS _core LIBRARY DESTINATION ${package}/eagle COMPONENT python3)
  install(DIRECTORY python_client/eagle DESTINATION ${package} COMPONENT python3
    PATTERN __pycache__ EXCLUDE PATTERN "*.so" EXCLUDE)
  configure_file(cmake/METADATA.in ${CMAKE_BINARY_DIR}/METADATA @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/METADATA DESTINATION ${package}/eagled-${PROJECT_VERSION}.dist-info COMPONENT python3)
endif()

if(EAGLE_PORTABLE)  # whose licences ask for their texts where the code is
  foreach(package libgrpc++-dev libprotobuf-dev libabsl-dev libre2-dev libc-ares-dev libssl-dev zlib1g-dev libzstd-dev
      llvm-19-dev libspdlog-dev libfmt-dev libtomlplusplus-dev libseccomp-dev libboost-dev libcli11-dev nlohmann-json3-dev
      libgomp1)
    foreach(place share/doc/eagled/licenses eagle/licenses)
      set(options COMPONENT daemon)
      if(place STREQUAL eagle/licenses)
        set(options COMPONENT python EXCLUDE_FROM_ALL)
      endif()
      install(FILES /usr/share/doc/${package}/copyright DESTINATION ${place} RENAME ${package} OPTIONAL ${options})
    endforeach()
  endforeach()
endif()

set(CPACK_PACKAGE_NAME eagle)
set(CPACK_PACKAGE_VENDOR "the eagle project")
set(CPACK_PACKAGE_CONTACT "the eagle project <root@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "graph execution daemon")
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_THREADS 0)
set(CPACK_GENERATOR DEB)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/EaglePackages.cmake)
set(CPACK_COMPONENTS_ALL daemon library dev)
if(EAGLE_PYTHON)
  list(APPEND CPACK_COMPONENTS_ALL python3)
endif()
set(CPACK_EAGLE_SOURCE ${PROJECT_SOURCE_DIR})
set(CPACK_EAGLE_PROCESSOR ${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_EAGLE_PYTHON ${Python_VERSION})
include(CPack)
