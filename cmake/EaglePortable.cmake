# EAGLE_PORTABLE: programs and libraries that need glibc alone, for wheels and tarballs that go to other systems.
#
# Programs have everything but glibc and libgomp linked in. Shared libraries and Python modules cannot: Debian compiles its
# static libraries for programs, with thread-local variables that a module may not have. What is packed brings the
# shared libraries of those along. Debian has static libraries of all but spdlog, fmt and toml++, which are made
# here from their headers.

# eagle_archive(OUT NAME): the static library libNAME.a.
function(eagle_archive out name)
  find_library(EAGLE_ARCHIVE_${name} lib${name}.a REQUIRED)
  set(${out} ${EAGLE_ARCHIVE_${name}} PARENT_SCOPE)
endfunction()

# eagle_archives_of(OUT MODULE): what linking statically with a pkg-config module takes, in the order of a linker.
function(eagle_archives_of out module)
  pkg_check_modules(portable_${module} REQUIRED ${module})
  set(found)
  foreach(name ${portable_${module}_STATIC_LIBRARIES})
    if(name MATCHES "^(dl|rt|m|pthread)$")  # of glibc
      list(APPEND found ${name})
    elseif(NOT name STREQUAL atomic)  # nothing here needs its calls on x86-64 and ARM64
      eagle_archive(archive ${name})
      list(APPEND found ${archive})
    endif()
  endforeach()
  list(REVERSE found)  # a library may stand there more than once: the last place is the one that counts
  list(REMOVE_DUPLICATES found)
  list(REVERSE found)
  set(${out} ${found} PARENT_SCOPE)
endfunction()

# eagle_linked(NAME STATIC lib... SHARED lib...): what programs link, and what shared libraries and modules link.
function(eagle_linked name)
  cmake_parse_arguments(ARG "" "" "STATIC;SHARED" ${ARGN})
  add_library(${name} INTERFACE IMPORTED)
  set(program $<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>)
  # A group: static libraries of abseil and gRPC refer to each other in circles.
  set_target_properties(${name} PROPERTIES INTERFACE_LINK_LIBRARIES
    "$<${program}:-Wl,--start-group>;$<${program}:${ARG_STATIC}>;$<${program}:-Wl,--end-group>;$<$<NOT:${program}>:${ARG_SHARED}>")
endfunction()

find_package(OpenSSL REQUIRED COMPONENTS Crypto SSL)
find_package(Protobuf 3.21 REQUIRED)
foreach(name crypto ssl protobuf seccomp zstd)
  eagle_archive(archive_${name} ${name})
endforeach()
eagle_archives_of(archives grpc++)
eagle_linked(eagle_protobuf STATIC ${archive_protobuf} SHARED protobuf::libprotobuf)
eagle_linked(eagle_crypto STATIC ${archive_crypto} ${CMAKE_DL_LIBS} SHARED OpenSSL::Crypto)
eagle_linked(eagle_ssl STATIC ${archive_ssl} ${archive_crypto} ${CMAKE_DL_LIBS} SHARED OpenSSL::SSL)
eagle_linked(eagle_grpc STATIC ${archives} ${archive_protobuf} SHARED grpc++ grpc gpr absl_synchronization protobuf::libprotobuf)
set_property(TARGET eagle_grpc PROPERTY INTERFACE_COMPILE_OPTIONS -pthread)
set_property(TARGET eagle_grpc APPEND PROPERTY INTERFACE_LINK_LIBRARIES Threads::Threads)
find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)
add_executable(gRPC::grpc_cpp_plugin IMPORTED)
set_target_properties(gRPC::grpc_cpp_plugin PROPERTIES IMPORTED_LOCATION ${GRPC_CPP_PLUGIN})

# Definitions of the preprocessor are those of the shared libraries, so that ccache knows the objects.
find_package(spdlog CONFIG REQUIRED)
find_package(fmt CONFIG REQUIRED)
add_library(eagle_spdlog STATIC ${CMAKE_CURRENT_LIST_DIR}/portable/log.cpp)
target_compile_definitions(eagle_spdlog PUBLIC
  $<TARGET_PROPERTY:spdlog::spdlog,INTERFACE_COMPILE_DEFINITIONS>
  $<TARGET_PROPERTY:fmt::fmt,INTERFACE_COMPILE_DEFINITIONS>)
pkg_check_modules(toml REQUIRED tomlplusplus)
add_library(eagle_toml STATIC ${CMAKE_CURRENT_LIST_DIR}/portable/toml.cpp)
target_compile_options(eagle_toml PUBLIC ${toml_CFLAGS})
add_library(PkgConfig::tomlplusplus ALIAS eagle_toml)

add_library(PkgConfig::seccomp INTERFACE IMPORTED)
set_target_properties(PkgConfig::seccomp PROPERTIES INTERFACE_LINK_LIBRARIES ${archive_seccomp})

set(ZLIB_USE_STATIC_LIBS ON)
find_package(LLVM 19.1 CONFIG REQUIRED)
# Nor does anything here call a solver (Z3), which LLVM names for its static analyser.
set_target_properties(LLVMSupport PROPERTIES INTERFACE_LINK_LIBRARIES
  "rt;dl;m;ZLIB::ZLIB;${archive_zstd};LLVMDemangle")
llvm_map_components_to_libnames(archives x86codegen aarch64codegen nvptxcodegen runtimedyld passes)
add_library(eagle_llvm INTERFACE IMPORTED)
target_link_libraries(eagle_llvm INTERFACE ${archives})

# Sections that nobody refers to go. Programs have the C++ runtime in them. DT_RPATH, which libraries that are brought along
# inherit, where DT_RUNPATH would have each look for its own.
set(program $<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>)
add_link_options(-Wl,--gc-sections -Wl,--disable-new-dtags
  $<${program}:-static-libstdc++> $<${program}:-static-libgcc> $<${program}:-Wl,--exclude-libs,ALL>)
