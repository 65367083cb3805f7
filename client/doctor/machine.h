// Machine: the facts about a host that doctor judges. Gathered apart from the judging, so that a test can
// make each of them wrong.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "client/doctor/finding.h"
#include "engine/base/status.h"
#include "engine/run/cuda/driver.h"

namespace eagle::doctor {

// A resource limit; `unlimited` is none.
struct Limit {
  static constexpr std::uint64_t unlimited = ~std::uint64_t{0};
  std::uint64_t soft = unlimited;
  std::uint64_t hard = unlimited;
};

struct Machine {
  std::filesystem::path root = "/";  // files of /proc, /sys, /dev are looked for below it
  std::string kernel_release;        // uname
  uid_t uid = 0;
  Limit memlock;  // bytes
  Limit nofile;
  Limit nproc;
  int cpus = 1;     // of the machine
  int threads = 1;  // that a team may have: affinity, cgroup, OMP_NUM_THREADS
  std::uint64_t ram = 0;
  Status memfd;                                  // a file for planes: made, sealed, mapped
  bool memfd_noexec = true;                      // the kernel knows MFD_NOEXEC_SEAL
  Status code_memfd;                             // a file for code: made, sealed, mapped to be executed
  StatusOr<std::string> helper = std::string();  // the compile helper's program
  std::string cache_directory;                   // of compiled kernels; empty: none
  std::optional<std::string> runtime_dir;        // XDG_RUNTIME_DIR
  Status cuda_driver;                            // whether it can be used, where there is one
  std::string cuda_library;                      // of the driver; empty: there is none
  Status cuda_graphs;                            // whether it has what graphs need
  Status cuda_conditionals;                      // and what their loops need
  int cuda_version = 0;                          // of the driver: 12040 is CUDA 12.4
  std::vector<run::cuda::DeviceInfo> gpus;
  std::vector<std::string> endpoints;  // where a daemon is looked for
};

Machine this_machine();

// Whether this host can run a daemon, and how well.
Findings check_kernel(const Machine& machine);
Findings check_limits(const Machine& machine);
Findings check_memory(const Machine& machine);
Findings check_cpus(const Machine& machine);
Findings check_gpus(const Machine& machine);
Findings check_compiler(const Machine& machine);  // the helper, and its cache's directory
// One endpoint: whether somebody listens, who, and who may connect.
Findings check_endpoint(const Machine& machine, const std::string& endpoint);
Findings check_runtime_dir(const Machine& machine);

// A package of a Python environment, as that environment tells it.
struct Distribution {
  std::string name;
  std::string version;
  std::string folder;
  bool ours = false;  // this project's
};
struct PythonPackages {
  std::string python;                       // the interpreter
  Status status;                            // whether it could be asked
  std::vector<Distribution> distributions;  // that provide a package `eagle`
  std::string imported;                     // the file that `import eagle` would load; empty: none
};
// Asks the interpreter, which gets ten seconds. It is searched in PATH; what it imports by itself at its
// start it imports here too, and `eagle` is looked for, not imported.
PythonPackages packages_of(const std::string& python);
Findings check_python(const PythonPackages& packages);

}  // namespace eagle::doctor
