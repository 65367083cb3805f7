// Each finding, by making its fact wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "client/doctor/daemon_checks.h"
#include "client/doctor/machine.h"
#include "engine/base/unique_fd.h"
#include "engine/run/host.h"

namespace eagle::doctor {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t gibibyte = 1u << 30;

class Doctor : public ::testing::Test {
protected:
  void SetUp() override {
    char name[] = "/tmp/eagle-doctor-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
    machine_.root = folder_;
    machine_.kernel_release = "6.1.0-13-amd64";
    machine_.uid = ::geteuid();
    machine_.memlock = {gibibyte, gibibyte};
    machine_.nofile = {1024, 1'048'576};
    machine_.cpus = 4;
    machine_.threads = 4;
    machine_.ram = 16 * gibibyte;
    machine_.helper = std::string("/usr/libexec/eagle/eagle-compile");
    put("sys/kernel/mm/transparent_hugepage/shmem_enabled", "always [within_size] advise never deny force\n");
    put("proc/sys/vm/max_map_count", "262144\n");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void put(const std::string& path, const std::string& content) const {
    std::filesystem::create_directories((folder_ / path).parent_path());
    std::ofstream(folder_ / path) << content;
  }

  // The one finding of this id.
  static Finding the(const std::string& id, const Findings& findings) {
    Finding found;
    int count = 0;
    for (const Finding& one : findings) {
      if (one.id == id) {
        found = one;
        ++count;
      }
    }
    EXPECT_EQ(count, 1) << id;
    return found;
  }
  static void expect(const Finding& found, Severity severity, const std::string& what,
                     const std::string& cure = {}) {
    EXPECT_EQ(found.severity, severity) << found.what;
    EXPECT_THAT(found.what, HasSubstr(what));
    EXPECT_THAT(found.cure, HasSubstr(cure));
    if (severity == Severity::problem || severity == Severity::warning) {
      EXPECT_FALSE(found.cure.empty()) << found.what;
    }
  }

  std::filesystem::path folder_;
  Machine machine_;
};

TEST_F(Doctor, AGoodHostHasNothingToSay) {
  for (const Findings& found : {check_kernel(machine_), check_limits(machine_), check_memory(machine_),
                                check_cpus(machine_), check_gpus(machine_)}) {
    EXPECT_EQ(worst(found), Severity::fine) << found.size();
    for (const Finding& one : found) EXPECT_EQ(one.severity, Severity::fine) << one.what;
  }
}

TEST_F(Doctor, ThisMachineCanBeAsked) {
  const Machine here = this_machine();
  EXPECT_FALSE(here.kernel_release.empty());
  EXPECT_GE(here.threads, 1);
  EXPECT_GT(here.ram, 0u);
  EXPECT_TRUE(here.memfd.ok()) << here.memfd.message();
  EXPECT_TRUE(here.code_memfd.ok()) << here.code_memfd.message();
}

// ---- kernel

TEST_F(Doctor, AnOldKernelIsAProblem) {
  machine_.kernel_release = "5.10.0-26-amd64";
  expect(the("kernel.version", check_kernel(machine_)), Severity::problem, "5.10.0-26", "6.1");
  machine_.kernel_release = "plan9";
  expect(the("kernel.version", check_kernel(machine_)), Severity::warning, "plan9");
}

TEST_F(Doctor, AKernelWithoutSealsIsAProblem) {
  machine_.memfd = Status(Reason::system, "memfd_create: Function not implemented");
  expect(the("kernel.memfd", check_kernel(machine_)), Severity::problem, "not implemented", "memfd_create");
}

TEST_F(Doctor, WhatIsNewerThanTheOldestKernelIsNotedWithItsFallback) {
  machine_.memfd_noexec = false;
  expect(the("kernel.noexec", check_kernel(machine_)), Severity::note, "made without it");
}

TEST_F(Doctor, CodeThatCannotBeExecutedIsAProblem) {
  put("proc/sys/vm/memfd_noexec", "2\n");
  expect(the("kernel.code", check_kernel(machine_)), Severity::problem, "vm.memfd_noexec is 2",
         "sysctl vm.memfd_noexec=0");
  put("proc/sys/vm/memfd_noexec", "0\n");
  machine_.code_memfd = Status(Reason::system, "mmap: Permission denied");
  expect(the("kernel.code", check_kernel(machine_)), Severity::problem, "Permission denied", "SELinux");
}

// ---- limits

TEST_F(Doctor, FewDescriptorsAreNamedWithTheirNumber) {
  machine_.nofile.hard = 256;
  expect(the("limits.nofile", check_limits(machine_)), Severity::problem, "256", "LimitNOFILE");
  machine_.nofile.hard = 4096;
  expect(the("limits.nofile", check_limits(machine_)), Severity::warning, "4096", "LimitNOFILE");
}

TEST_F(Doctor, LittleLockedMemoryIsNoted) {
  machine_.memlock.soft = 64 << 10;
  expect(the("limits.memlock", check_limits(machine_)), Severity::note, "64 KiB", "LimitMEMLOCK");
}

TEST_F(Doctor, AFullPidsGroupIsAProblem) {
  machine_.nproc.soft = Limit::unlimited;
  put("proc/self/cgroup", "0::/unit\n");
  put("sys/fs/cgroup/unit/pids.max", "100\n");
  put("sys/fs/cgroup/unit/pids.current", "90\n");
  expect(the("limits.processes", check_limits(machine_)), Severity::problem, "10 more", "TasksMax");
  put("sys/fs/cgroup/unit/pids.current", "50\n");
  expect(the("limits.processes", check_limits(machine_)), Severity::warning, "50 more", "--threads");
  put("sys/fs/cgroup/unit/pids.max", "max\n");
  EXPECT_EQ(the("limits.processes", check_limits(machine_)).severity, Severity::fine);
}

TEST_F(Doctor, PidsOfVersionOneAreSeenToo) {
  put("proc/self/cgroup", "5:cpu,cpuacct:/a\n4:pids:/unit\n0::/\n");
  put("sys/fs/cgroup/pids/unit/pids.max", "20\n");
  put("sys/fs/cgroup/pids/unit/pids.current", "15\n");
  expect(the("limits.processes", check_limits(machine_)), Severity::problem, "5 more");
}

TEST_F(Doctor, AUsersOwnLimitOfProcessesCounts) {
  machine_.uid = 1000;
  machine_.nproc.soft = 40;
  expect(the("limits.processes", check_limits(machine_)), Severity::warning, "ulimit -u");
  machine_.uid = 0;  // whom it does not bind
  EXPECT_EQ(the("limits.processes", check_limits(machine_)).severity, Severity::fine);
}

TEST_F(Doctor, FewMappingsAreNamed) {
  put("proc/sys/vm/max_map_count", "30000\n");
  expect(the("limits.maps", check_limits(machine_)), Severity::warning, "30000", "max_map_count=");
}

// ---- memory, processors, GPUs

TEST_F(Doctor, ASmallControlGroupIsNamed) {
  put("proc/self/cgroup", "0::/unit\n");
  put("sys/fs/cgroup/unit/memory.max", std::to_string(256 << 20) + "\n");
  expect(the("memory.budget", check_memory(machine_)), Severity::warning, "allows 256 MiB of 16384 MiB",
         "MemoryMax");
}

TEST_F(Doctor, StrictOvercommitIsNamed) {
  put("proc/sys/vm/overcommit_memory", "2\n");
  expect(the("memory.overcommit", check_memory(machine_)), Severity::warning, "is 2", "overcommit_memory=0");
}

TEST_F(Doctor, MissingHugePagesAreNoted) {
  put("sys/kernel/mm/transparent_hugepage/shmem_enabled", "always within_size advise [never] deny force\n");
  expect(the("memory.huge_pages", check_memory(machine_)), Severity::note, "never", "within_size");
  std::filesystem::remove_all(folder_ / "sys/kernel");
  expect(the("memory.huge_pages", check_memory(machine_)), Severity::note, "no huge pages");
}

TEST_F(Doctor, AQuotaBelowTheProcessorsIsNoted) {
  put("proc/self/cgroup", "0::/unit\n");
  put("sys/fs/cgroup/unit/cpu.max", "200000 100000\n");
  machine_.threads = 2;
  expect(the("cpu.budget", check_cpus(machine_)), Severity::note, "2 of 4 processors", "OMP_NUM_THREADS");
}

TEST_F(Doctor, AGpuDriverIsSaidAsSuchAndSoIsNone) {
  expect(the("gpu.driver", check_gpus(machine_)), Severity::fine, "no GPU driver");
  put("dev/kfd", "");
  expect(the("gpu.driver", check_gpus(machine_)), Severity::note, "AMD");
  put("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX 550.1\nGCC version: 12\n");
  expect(the("gpu.driver", check_gpus(machine_)), Severity::note, "NVIDIA UNIX 550.1", "--gpus all");
}

TEST_F(Doctor, GpusAreToldWithWhatTheyAreGoodFor) {
  machine_.cuda_library = "libcuda.so.1";
  machine_.cuda_version = 12'040;
  machine_.gpus = {{0, "H", "GPU-1", 9, 0, 132, 80 * gibibyte}, {1, "V", "GPU-2", 7, 0, 80, 16 * gibibyte}};
  expect(the("gpu.driver", check_gpus(machine_)), Severity::fine, "CUDA 12.4");
  expect(the("gpu.cuda0", check_gpus(machine_)), Severity::fine, "kernels are made for sm_90");
  expect(the("gpu.cuda1", check_gpus(machine_)), Severity::note, "too old", "7.5");
  machine_.cuda_graphs = Status(Reason::system, "libcuda.so.1 lacks cuGraphCreate");
  expect(the("gpu.graphs", check_gpus(machine_)), Severity::note, "lacks cuGraphCreate", "update");
  machine_.cuda_conditionals = Status(Reason::system, "libcuda.so.1 is a driver for CUDA 12.1");
  expect(the("gpu.conditionals", check_gpus(machine_)), Severity::note, "CUDA 12.1", "update");
}

TEST_F(Doctor, ADriverThatCannotBeUsedIsAWarning) {
  machine_.cuda_driver = Status(Reason::system, "libcuda.so.1 lacks cuInit");
  expect(the("gpu.driver", check_gpus(machine_)), Severity::warning, "lacks cuInit", "update the driver");
}

// ---- compiler

TEST_F(Doctor, AMissingHelperIsAProblem) {
  machine_.helper = Status(Reason::compile_failed, "eagle-compile is in none of: /usr/bin");
  expect(the("compiler.helper", check_compiler(machine_)), Severity::problem, "in none of",
         "EAGLE_COMPILE_HELPER");
}

TEST_F(Doctor, ACacheThatIsNotTheUsersAloneIsNamed) {
  expect(the("compiler.cache", check_compiler(machine_)), Severity::note, "compiles", "EAGLE_CACHE_DIR");
  machine_.cache_directory = folder_ / "cache";
  EXPECT_EQ(the("compiler.cache", check_compiler(machine_)).severity, Severity::fine);  // not there yet
  std::filesystem::create_directory(machine_.cache_directory);
  ASSERT_EQ(::chmod(machine_.cache_directory.c_str(), 0700), 0);
  EXPECT_EQ(the("compiler.cache", check_compiler(machine_)).severity, Severity::fine);
  ASSERT_EQ(::chmod(machine_.cache_directory.c_str(), 0777), 0);
  expect(the("compiler.cache", check_compiler(machine_)), Severity::warning, "0777", "chmod 700");
  ASSERT_EQ(::chmod(machine_.cache_directory.c_str(), 0755), 0);
  expect(the("compiler.cache", check_compiler(machine_)), Severity::note, "0755", "chmod 700");
  machine_.uid += 1;
  expect(the("compiler.cache", check_compiler(machine_)), Severity::warning, "belongs to uid",
         "EAGLE_CACHE_DIR");
  machine_.uid -= 1;
  put("file", "");
  machine_.cache_directory = folder_ / "file";
  expect(the("compiler.cache", check_compiler(machine_)), Severity::warning, "no directory");
}

// ---- sockets

class Listener {
public:
  explicit Listener(const std::string& path) : fd_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    bound_ = ::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
             ::listen(fd_.get(), 4) == 0;
  }
  [[nodiscard]] bool bound() const { return bound_; }

private:
  UniqueFd fd_;
  bool bound_ = false;
};

TEST_F(Doctor, ASocketThatIsListenedAtSaysWhose) {
  const std::string path = folder_ / "a.sock";
  const Listener listener(path);
  ASSERT_TRUE(listener.bound());
  expect(the("socket", check_endpoint(machine_, "unix:" + path)), Severity::fine,
         "uid " + std::to_string(::geteuid()));
  // As another user sees it: neither root's, unless it is, nor his.
  if (::geteuid() != 0) {
    machine_.uid += 1;
    expect(the("socket", check_endpoint(machine_, "unix:" + path)), Severity::problem, "neither root");
  }
}

TEST_F(Doctor, AStaleSocketIsNamed) {
  const std::string path = folder_ / "a.sock";
  { ASSERT_TRUE(Listener(path).bound()); }
  expect(the("socket", check_endpoint(machine_, "unix:" + path)), Severity::warning,
         "nobody listens at any more", "start eagled");
}

TEST_F(Doctor, WhatIsNoSocketIsNamed) {
  put("file", "");
  expect(the("socket", check_endpoint(machine_, "unix:" + (folder_ / "file").string())), Severity::problem,
         "no socket");
  expect(the("socket", check_endpoint(machine_, "unix:" + (folder_ / "none").string())), Severity::note,
         "nobody listens", "eagled --listen unix:");
  std::filesystem::create_symlink(folder_ / "gone", folder_ / "link");
  expect(the("socket", check_endpoint(machine_, "unix:" + (folder_ / "link").string())), Severity::warning,
         "leads nowhere");
}

TEST_F(Doctor, APathThatIsTooLongIsExplained) {
  expect(the("socket", check_endpoint(machine_, "unix:/" + std::string(107, 'x'))), Severity::problem,
         "108 bytes");
  expect(the("socket", check_endpoint(machine_, "tcp:host:1")), Severity::problem, "dns:HOST:PORT");
  expect(the("socket", check_endpoint(machine_, "dns:host:7411")), Severity::note, "TCP");
}

TEST_F(Doctor, TheRuntimeFolderIsLookedAt) {
  expect(the("socket.runtime_dir", check_runtime_dir(machine_)), Severity::note, "not set");
  machine_.runtime_dir = folder_ / "none";
  expect(the("socket.runtime_dir", check_runtime_dir(machine_)), Severity::warning, "no folder", "mkdir");
  machine_.runtime_dir = folder_;
  EXPECT_EQ(the("socket.runtime_dir", check_runtime_dir(machine_)).severity, Severity::fine);
  ASSERT_EQ(::chmod(folder_.c_str(), 0777), 0);
  expect(the("socket.runtime_dir", check_runtime_dir(machine_)), Severity::warning, "0777");
  ASSERT_EQ(::chmod(folder_.c_str(), 0700), 0);
  machine_.runtime_dir = folder_ / std::string(100, 'x');
  std::filesystem::create_directory(*machine_.runtime_dir);
  expect(the("socket.runtime_dir", check_runtime_dir(machine_)), Severity::warning, "so long", "shorter");
}

// ---- Python

PythonPackages installed(std::vector<Distribution> distributions, std::string imported) {
  return {"python3", Status(), std::move(distributions), std::move(imported)};
}
const Distribution own{"eagled", EAGLE_VERSION, "/venv/lib", true};

TEST_F(Doctor, ConflictingPackagesAreNamed) {
  EXPECT_EQ(the("python.package", check_python(installed({own}, "/venv/lib/eagle/__init__.py"))).severity,
            Severity::fine);
  const Distribution other{"eagle-cms", "3.2", "/venv/lib", false};
  expect(the("python.package", check_python(installed({own, other}, "/venv/lib/eagle/__init__.py"))),
         Severity::problem, "eagle-cms 3.2", "uninstall eagle-cms");
  expect(the("python.package", check_python(installed({other}, "/venv/lib/eagle/__init__.py"))),
         Severity::problem, "eagle-cms 3.2");
  const Distribution again{"eagled", EAGLE_VERSION, "/usr/lib", true};
  expect(check_python(installed({own, again}, "/venv/lib/eagle/__init__.py"))[0], Severity::problem, "twice");
  expect(the("python.package", check_python(installed({own}, "/srv/me/eagle/__init__.py"))),
         Severity::problem, "would load /srv/me/eagle", "PYTHONPATH");
  expect(the("python.package", check_python(installed({{"eagled", "0.0.1", "/venv/lib", true}},
                                                      "/venv/lib/eagle/__init__.py"))),
         Severity::warning, "0.0.1", "upgrade");
  expect(the("python.package", check_python(installed({}, ""))), Severity::note, "no package");
  expect(the("python.package", check_python(installed({}, "/src/eagle/__init__.py"))), Severity::note,
         "no installed package");
}

TEST_F(Doctor, AnInterpreterIsAskedAndMayBeMissing) {
  expect(the("python.package", check_python(packages_of(folder_ / "python9"))), Severity::note,
         "cannot be started", "--python");
  // Stands for an interpreter: it answers as one with a stranger's package does.
  put("python",
      "#!/bin/sh\nprintf 'distribution\\tother\\t1.0\\t/x\\t0\\nimported\\t/x/eagle/__init__.py\\n'\n");
  ASSERT_EQ(::chmod((folder_ / "python").c_str(), 0700), 0);
  const PythonPackages packages = packages_of(folder_ / "python");
  ASSERT_TRUE(packages.status.ok()) << packages.status.message();
  ASSERT_EQ(packages.distributions.size(), 1u);
  EXPECT_EQ(packages.distributions[0].name, "other");
  EXPECT_EQ(packages.imported, "/x/eagle/__init__.py");
  put("broken", "#!/bin/sh\nexit 3\n");
  ASSERT_EQ(::chmod((folder_ / "broken").c_str(), 0700), 0);
  expect(the("python.package", check_python(packages_of(folder_ / "broken"))), Severity::note, "ended badly");
}

// ---- with a daemon

SessionInfo good_daemon() {
  SessionInfo info;
  info.endpoint = "unix:/run/eagled/eagled.sock";
  info.transport = "memfd + ring";
  info.version = EAGLE_VERSION;
  info.host = {4242, run::this_host().host_name};
  info.threads = 4;
  info.plane_bytes = 10;
  info.plane_budget_bytes = 100;
  return info;
}

TEST_F(Doctor, AGoodDaemonHasNothingToSay) {
  for (const Finding& one : check_daemon(machine_, good_daemon()))
    EXPECT_EQ(one.severity, Severity::fine) << one.what;
}

TEST_F(Doctor, ADaemonThatDoesNotAnswerIsAProblem) {
  expect(the("daemon.reachable", check_daemon(machine_, Status(Reason::no_daemon, "no daemon answers at X"))),
         Severity::problem, "no daemon answers", "--endpoint");
}

TEST_F(Doctor, ADaemonOfAnotherReleaseIsNamed) {
  SessionInfo info = good_daemon();
  info.version = "9.9.9";
  expect(the("daemon.version", check_daemon(machine_, info)), Severity::warning, "9.9.9", "same release");
}

TEST_F(Doctor, ADaemonWithoutRingsIsNoted) {
  SessionInfo info = good_daemon();
  info.transport = "memfd + grpc";
  expect(the("daemon.transport", check_daemon(machine_, info)), Severity::note, "over gRPC", "EAGLE_RING");
}

TEST_F(Doctor, AFullDaemonIsNamed) {
  SessionInfo info = good_daemon();
  info.plane_bytes = 95;
  expect(the("daemon.planes", check_daemon(machine_, info)), Severity::warning, "95 %", "plane_budget");
}

TEST_F(Doctor, RefusedTenantsAreNoted) {
  SessionInfo info = good_daemon();
  info.tenants.push_back({.name = "uid:1000", .refused = 7});
  expect(the("daemon.tenants", check_daemon(machine_, info)), Severity::note, "refused 7 times", "quota");
}

TEST_F(Doctor, TheDaemonsOwnLimitsAreLookedAt) {
  put("proc/4242/limits",
      "Limit                     Soft Limit           Hard Limit           Units     \n"
      "Max open files            1024                 4096                 files     \n");
  expect(the("daemon.nofile", check_daemon(machine_, good_daemon())), Severity::warning, "1024",
         "LimitNOFILE");
  SessionInfo info = good_daemon();
  info.threads = 1;
  expect(the("daemon.threads", check_daemon(machine_, info)), Severity::note, "on 1 threads");
  info.host.host_name += "-elsewhere";
  for (const Finding& one : check_daemon(machine_, info)) EXPECT_NE(one.id, "daemon.nofile");
}

}  // namespace
}  // namespace eagle::doctor
