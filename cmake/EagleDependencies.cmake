# What comes from Debian; docs/design/dependencies.md says why each.
find_package(Threads REQUIRED)
find_package(Protobuf 3.21 REQUIRED)
find_package(gRPC CONFIG REQUIRED)
find_package(spdlog CONFIG REQUIRED)
find_package(CLI11 CONFIG REQUIRED)
find_package(Boost 1.74 REQUIRED)  # headers only: Asio
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)  # SHA-256 and random bytes
find_package(PkgConfig REQUIRED)
pkg_check_modules(seccomp REQUIRED IMPORTED_TARGET libseccomp)
find_package(LLVM 19.1 CONFIG REQUIRED)
if(EAGLE_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
if(EAGLE_BENCHMARKS)
  find_package(benchmark REQUIRED)
endif()
