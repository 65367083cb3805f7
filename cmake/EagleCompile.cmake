# How every target of this project is compiled, and the functions that declare one.
include(GNUInstallDirs)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(THREADS_PREFER_PTHREAD_FLAG ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

# Loops over samples gain from more than -O2 (engine/ asks for it); what waits for sockets does not,
# and takes longer to compile.
if(CMAKE_CXX_FLAGS_RELEASE STREQUAL "-O3 -DNDEBUG")
  set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
endif()
macro(eagle_optimise_loops)
  string(REPLACE "-O2" "-O3" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
endmacro()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()
find_program(MOLD_PROGRAM mold)
if(MOLD_PROGRAM)
  # Code that runs once at the start, and code that handles failures, stand together, as GNU ld and lld have it without
  # being asked: pages of them alone are never read, or read once (1.4 MiB of the Python module).
  add_link_options(-fuse-ld=mold -Wl,-z,keep-text-section-prefix)
endif()

# What every target of ours gets: warnings are errors, and floating-point contraction is off everywhere,
# because the interpreter, the reductions and the host-side folding promise bits.
add_library(eagle_compile_options INTERFACE)
target_compile_options(eagle_compile_options INTERFACE
  -Wall -Wextra -Wpedantic -Werror -Wshadow -Wnon-virtual-dtor -Wundef -Wcast-align
  -ffp-contract=off -fno-omit-frame-pointer)
# GCC 12 sees overlapping copies inside std::string's own operator+ where there are none (GCC bug 105651).
target_compile_options(eagle_compile_options INTERFACE
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>)
target_include_directories(eagle_compile_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_definitions(eagle_compile_options INTERFACE EAGLE_VERSION="${PROJECT_VERSION}")

# For code that is measured against, and never shipped: what this machine's compiler makes of it at its best.
set(eagle_native_options -O3 -march=native)

if(EAGLE_SANITIZE)
  list(JOIN EAGLE_SANITIZE "," _sanitizers)
  add_compile_options(-fsanitize=${_sanitizers} -fno-sanitize-recover=all -g)
  # GCC takes instrumented code for code that reads what is not set (GCC bug 105562).
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  add_compile_definitions(EAGLE_SANITIZED)  # compilers have no common way to ask
  add_link_options(-fsanitize=${_sanitizers})
endif()
if(EAGLE_LINT)
  find_program(CLANG_TIDY NAMES clang-tidy-19 clang-tidy REQUIRED)
endif()

# Several files of one target are compiled as one: most of a compiler's time goes into headers that they share, and
# a cold build takes half as long. So names in the unnamed namespaces of one target differ. An edit compiles its
# whole batch anew, which is why the dev preset leaves it off.
option(EAGLE_UNITY "Compile the files of a target together, several at once" ON)
set(EAGLE_UNITY_BATCH 10 CACHE STRING "How many at once; 0: all of a target, which finds names that two of them have")
# What only holds for files by themselves; the dev preset looks at that. GCC takes the files of a batch for headers, and
# warns of unnamed namespaces in those; Clang warns where a header's name is one of a file before it, too.
add_library(eagle_batch_options INTERFACE)
target_compile_options(eagle_batch_options INTERFACE
  $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage> $<$<CXX_COMPILER_ID:Clang>:-Wno-shadow>)
function(_eagle_unity name)
  if(EAGLE_UNITY AND NOT EAGLE_LINT)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${EAGLE_UNITY_BATCH})
    # Last, and so behind the options that it takes back.
    target_link_libraries(${name} PRIVATE $<BUILD_INTERFACE:eagle_batch_options>)
  endif()
endfunction()

# eagle_library(NAME SOURCES a.cpp ... [PUBLIC lib ...] [PRIVATE lib ...])
# A static library of this project.
function(eagle_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE} $<BUILD_INTERFACE:eagle_compile_options>)
  _eagle_unity(${name})
  _eagle_lint(${name})
endfunction()

# eagle_program(NAME SOURCES main.cpp ... PRIVATE lib ...)
function(eagle_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PRIVATE" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_PRIVATE} eagle_compile_options)
  _eagle_unity(${name})
  _eagle_lint(${name})
endfunction()

# eagle_test(NAME SOURCES a_test.cpp ... PRIVATE lib ... [SUITE unit] [TIMEOUT 60] [ENVIRONMENT VAR=x])
# A GoogleTest program. Every test of it is one ctest test with a watchdog and the suite as its label.
function(eagle_test name)
  if(NOT EAGLE_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "SUITE;TIMEOUT" "SOURCES;PRIVATE;ENVIRONMENT" ${ARGN})
  if(NOT ARG_SUITE)
    set(ARG_SUITE unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_PRIVATE} GTest::gmock GTest::gtest_main eagle_compile_options)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST
    PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS ${ARG_SUITE})
  if(ARG_ENVIRONMENT)
    # Not above: there, all variables after the first would be lost.
    set(script ${CMAKE_CURRENT_BINARY_DIR}/${name}_environment.cmake)
    file(GENERATE OUTPUT ${script} CONTENT
      "set_tests_properties(\${${name}_TESTS} PROPERTIES ENVIRONMENT [==[${ARG_ENVIRONMENT}]==])\n")
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${script})
  endif()
endfunction()

# eagle_fuzz(NAME SOURCES x_fuzz.cpp ... PRIVATE lib ... [ENVIRONMENT VAR=x])
# A fuzz target (tests/fuzz/target.h): a test that replays its corpus, tests/fuzz/corpus/NAME; with the fuzz
# preset, a libFuzzer program.
function(eagle_fuzz name)
  if(NOT EAGLE_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;PRIVATE;ENVIRONMENT" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_PRIVATE} eagle_proto_testing eagle_compile_options)
  if("fuzzer-no-link" IN_LIST EAGLE_SANITIZE)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    return()
  endif()
  target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/fuzz/replay.cpp)
  add_test(NAME ${name}.corpus COMMAND ${name} ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name})
  set_tests_properties(${name}.corpus PROPERTIES TIMEOUT 120 LABELS unit ENVIRONMENT "${ARG_ENVIRONMENT}")
endfunction()

function(_eagle_lint name)
  if(EAGLE_LINT)
    set_target_properties(${name} PROPERTIES CXX_CLANG_TIDY "${CLANG_TIDY}")
  endif()
endfunction()
