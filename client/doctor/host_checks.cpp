// What the host's kernel, limits, memory and processors give a daemon.
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "client/doctor/machine.h"
#include "engine/codegen/device_arch.h"
#include "engine/run/cgroup.h"

namespace eagle::doctor {
namespace {

using enum Severity;

constexpr std::uint64_t mebibyte = 1u << 20;

// What files of /proc and /sys hold is short; empty where there is none.
std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(4096, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

std::optional<std::uint64_t> number_in(const std::filesystem::path& path) {
  const std::string text = contents(path);
  if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789") != std::string::npos)
    return {};
  return std::stoull(text);
}

std::string mib(std::uint64_t bytes) { return std::to_string(bytes / mebibyte) + " MiB"; }

std::string shown(std::uint64_t limit) {
  return limit == Limit::unlimited ? "unlimited" : std::to_string(limit);
}

std::string mode_text(mode_t mode) {
  char text[8];
  std::snprintf(text, sizeof text, "%04o", static_cast<unsigned>(mode & 07777));
  return text;
}

// "6.1.0-13-amd64" -> {6, 1}
std::optional<std::pair<int, int>> version_of(const std::string& release) {
  int major = 0;
  int minor = 0;
  if (std::sscanf(release.c_str(), "%d.%d", &major, &minor) != 2) return {};
  return std::pair(major, minor);
}

// The folder of the process's own control group for a controller; version 2's where there is no other.
std::filesystem::path cgroup_of(const Machine& machine, const std::string& controller) {
  std::ifstream groups(machine.root / "proc/self/cgroup");
  std::filesystem::path unified;
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(std::min(line.size(), second + 2));
    if (controllers == ",,") unified = machine.root / "sys/fs/cgroup" / path;
    if (controllers.find("," + controller + ",") != std::string::npos)
      return machine.root / "sys/fs/cgroup" / controller / path;
  }
  return unified;
}

}  // namespace

Findings check_kernel(const Machine& machine) {
  Findings found;
  const auto version = version_of(machine.kernel_release);
  if (!version) {
    found.push_back({"kernel.version", warning, "the kernel calls itself '" + machine.kernel_release + "'",
                     "eagled is made for Linux 6.1 and later"});
  } else if (*version < std::pair(6, 1)) {
    found.push_back({"kernel.version", problem, "Linux " + machine.kernel_release + " is older than 6.1",
                     "boot a kernel from 6.1 on (Debian 12 has one)"});
  } else {
    found.push_back({"kernel.version", fine, "Linux " + machine.kernel_release, ""});
  }
  if (machine.memfd.ok()) {
    found.push_back(
        {"kernel.memfd", fine, "planes: files without a name can be made, sealed and mapped", ""});
  } else {
    found.push_back(
        {"kernel.memfd", problem, "planes cannot be made: " + machine.memfd.message(),
         "allow memfd_create and its seals (a seccomp profile or a kernel without them refuses)"});
  }
  // The one feature above 6.1; without it the same is done with less.
  if (machine.memfd_noexec) {
    found.push_back(
        {"kernel.noexec", fine, "planes can be barred from being executed (MFD_NOEXEC_SEAL)", ""});
  } else {
    found.push_back(
        {"kernel.noexec", note,
         "the kernel has no MFD_NOEXEC_SEAL (Linux 6.3): planes are made without it, of mode 0600", ""});
  }
  const auto noexec = number_in(machine.root / "proc/sys/vm/memfd_noexec");
  if (!machine.code_memfd.ok() || noexec == 2) {
    found.push_back({"kernel.code", problem,
                     "compiled kernels cannot be mapped to be executed: " +
                         (machine.code_memfd.ok() ? "vm.memfd_noexec is 2" : machine.code_memfd.message()),
                     noexec.value_or(0) > 0
                         ? "sysctl vm.memfd_noexec=0"
                         : "allow executable mappings of memfds (SELinux: execmem; a noexec policy)"});
  } else {
    found.push_back({"kernel.code", fine, "compiled kernels can be mapped to be executed", ""});
  }
  return found;
}

Findings check_limits(const Machine& machine) {
  Findings found;
  constexpr std::uint64_t few_files = 1024;
  constexpr std::uint64_t many_files = 65'536;
  const std::uint64_t files = machine.nofile.hard;
  const std::string files_cure =
      "raise the hard limit: LimitNOFILE=65536 in the unit, `ulimit -Hn 65536`, or limits.conf; eagled "
      "raises "
      "its soft limit by itself";
  if (files < few_files) {
    found.push_back(
        {"limits.nofile", problem, "only " + shown(files) + " open files: a few hundred planes", files_cure});
  } else if (files < many_files) {
    found.push_back({"limits.nofile", warning,
                     shown(files) +
                         " open files, one of which every plane takes: under the daemon's bound of "
                         "50,000 planes",
                     files_cure});
  } else {
    found.push_back({"limits.nofile", fine, shown(files) + " open files", ""});
  }
  constexpr std::uint64_t usual_memlock = 8 * mebibyte;
  if (machine.memlock.soft < usual_memlock) {
    found.push_back({"limits.memlock", note,
                     "only " + std::to_string(machine.memlock.soft / 1024) +
                         " KiB may be locked: nothing on the CPU locks memory, GPU planes would",
                     "LimitMEMLOCK=infinity in the unit, or `ulimit -l unlimited`, before a GPU is used"});
  } else {
    found.push_back({"limits.memlock", fine,
                     machine.memlock.soft == Limit::unlimited ? "memory may be locked without limit"
                                                              : mib(machine.memlock.soft) + " may be locked",
                     ""});
  }
  // A worker: the team, gRPC's threads, pools, the compile helpers.
  const std::uint64_t needed = static_cast<std::uint64_t>(machine.threads) + 64;
  std::uint64_t room = machine.uid == 0 ? Limit::unlimited : machine.nproc.soft;
  std::string which = "ulimit -u";
  const std::filesystem::path group = cgroup_of(machine, "pids");
  if (const auto most = number_in(group / "pids.max")) {
    const std::uint64_t used = number_in(group / "pids.current").value_or(0);
    const std::uint64_t left = *most > used ? *most - used : 0;
    if (left < room) {
      room = left;
      which = "pids.max of the control group";
    }
  }
  if (room < needed) {
    found.push_back({"limits.processes", room < 32 ? problem : warning,
                     "room for " + std::to_string(room) + " more processes and threads (" + which +
                         "); a team of " + std::to_string(machine.threads) +
                         " and the rest of a daemon want " + std::to_string(needed),
                     "raise it (TasksMax= in the unit, --pids-limit of a container), or start eagled with "
                     "fewer --threads"});
  } else {
    found.push_back(
        {"limits.processes", fine, "room for " + shown(room) + " more processes and threads", ""});
  }
  constexpr std::uint64_t maps_needed = 60'000;
  if (const auto maps = number_in(machine.root / "proc/sys/vm/max_map_count")) {
    if (*maps < maps_needed) {
      found.push_back({"limits.maps", warning,
                       "a process may have " + std::to_string(*maps) +
                           " mappings: under the daemon's bound of "
                           "50,000 planes",
                       "sysctl vm.max_map_count=262144"});
    } else {
      found.push_back({"limits.maps", fine, std::to_string(*maps) + " mappings of a process", ""});
    }
  }
  return found;
}

Findings check_memory(const Machine& machine) {
  Findings found;
  const auto group = run::cgroup_memory(machine.root);
  const std::uint64_t limit = std::min(machine.ram, group.value_or(machine.ram));
  const std::uint64_t budget = limit / 4 * 3;
  const std::string basis = group && *group < machine.ram
                                ? "the control group allows " + mib(*group) + " of " + mib(machine.ram)
                                : "the machine has " + mib(machine.ram);
  if (budget < 256 * mebibyte) {
    found.push_back({"memory.budget", warning, basis + ": planes may take " + mib(budget) + " of it",
                     "give the daemon more (MemoryMax=, --memory), or keep arrays small"});
  } else {
    found.push_back({"memory.budget", fine, basis + ": planes may take " + mib(budget) + " of it", ""});
  }
  if (const auto overcommit = number_in(machine.root / "proc/sys/vm/overcommit_memory"); overcommit == 2) {
    found.push_back(
        {"memory.overcommit", warning,
         "vm.overcommit_memory is 2: maps of planes count against the commit limit in every client",
         "sysctl vm.overcommit_memory=0"});
  }
  const std::string pages = contents(machine.root / "sys/kernel/mm/transparent_hugepage/shmem_enabled");
  const std::size_t open = pages.find('[');
  const std::size_t close = pages.find(']');
  const std::string chosen =
      open == std::string::npos || close == std::string::npos ? "" : pages.substr(open + 1, close - open - 1);
  if (chosen.empty()) {
    found.push_back({"memory.huge_pages", note, "the kernel has no huge pages for shared memory", ""});
  } else if (chosen == "never" || chosen == "deny" || chosen == "advise") {
    found.push_back({"memory.huge_pages", note,
                     "huge pages for shared memory: " + chosen + "; planes use small pages" +
                         (chosen == "advise" ? " but for clients that ask for huge ones" : ""),
                     "where arrays are large: echo within_size > "
                     "/sys/kernel/mm/transparent_hugepage/shmem_enabled"});
  } else {
    found.push_back({"memory.huge_pages", fine, "huge pages for shared memory: " + chosen, ""});
  }
  return found;
}

Findings check_cpus(const Machine& machine) {
  Findings found;
  const auto quota = run::cgroup_cpus(machine.root);
  std::string what =
      std::to_string(machine.threads) + " of " + std::to_string(machine.cpus) + " processors for a team";
  if (quota) what += "; the control group allows " + std::to_string(*quota);
  if (machine.threads < machine.cpus) {
    found.push_back(
        {"cpu.budget", note, what,
         "the least of affinity, the control group's quota and OMP_NUM_THREADS counts; change the one "
         "that is not meant"});
  } else {
    found.push_back({"cpu.budget", fine, what, ""});
  }
  return found;
}

Finding check_gpu(const run::cuda::DeviceInfo& gpu) {
  const std::string id = "gpu.cuda" + std::to_string(gpu.ordinal);
  const auto arch = codegen::device_arch_for(gpu.major, gpu.minor);
  const std::string what = "cuda:" + std::to_string(gpu.ordinal) + " is " + gpu.name + " (" + gpu.uuid +
                           "), " + std::to_string(gpu.bytes >> 20) + " MiB, compute capability " +
                           std::to_string(gpu.major) + "." + std::to_string(gpu.minor);
  if (!arch.ok())
    return {id, note, what + ": too old for the kernels of this release", "7.5 is the oldest that will do"};
  return {
      id, fine,
      what + "; kernels are made for " + std::string(arch->name) + ", and `eaglectl verify` checks its bits",
      ""};
}

Findings check_gpus(const Machine& machine) {
  const std::string cpus = "graphs are computed on CPUs";
  const std::string nvidia = contents(machine.root / "proc/driver/nvidia/version");
  std::error_code error;
  if (!machine.cuda_driver.ok())
    return {{"gpu.driver", warning, "NVIDIA's driver cannot be used: " + machine.cuda_driver.message(),
             "reinstall or update the driver; without one eagle computes on CPUs as before"}};
  if (!machine.cuda_library.empty()) {
    Findings found = {{"gpu.driver", fine,
                       machine.cuda_library + " is a driver for CUDA " +
                           run::cuda::version_text(machine.cuda_version) +
                           "; graphs and runs over arrays on its GPUs are computed there",
                       ""}};
    if (!machine.cuda_graphs.ok())
      found.push_back({"gpu.graphs", note, machine.cuda_graphs.message(), "update NVIDIA's driver"});
    if (!machine.cuda_conditionals.ok())
      found.push_back(
          {"gpu.conditionals", note, machine.cuda_conditionals.message(),
           "update NVIDIA's driver; loops of a graph repeat between looks of the host until then"});
    for (const run::cuda::DeviceInfo& gpu : machine.gpus) found.push_back(check_gpu(gpu));
    return found;
  }
  if (!nvidia.empty())
    return {{"gpu.driver", note,
             "an NVIDIA driver is loaded (" + nvidia.substr(0, nvidia.find('\n')) +
                 "), and there is no libcuda.so.1 here; " + cpus,
             "in a container, give it the driver's libraries: --gpus all"}};
  if (std::filesystem::exists(machine.root / "dev/kfd", error))
    return {{"gpu.driver", note, "an AMD driver is loaded (/dev/kfd); " + cpus, ""}};
  return {{"gpu.driver", fine, "no GPU driver: none is needed, " + cpus, ""}};
}

Findings check_compiler(const Machine& machine) {
  Findings found;
  if (machine.helper.ok()) {
    found.push_back({"compiler.helper", fine, "the compile helper is " + *machine.helper, ""});
  } else {
    found.push_back({"compiler.helper", problem, machine.helper.status().message(),
                     "install eagle-compile beside eagled, or name it in EAGLE_COMPILE_HELPER"});
  }
  const std::string& folder = machine.cache_directory;
  if (folder.empty()) {
    found.push_back({"compiler.cache", note, "no cache directory: every process compiles its kernels anew",
                     "set HOME, XDG_CACHE_HOME or EAGLE_CACHE_DIR"});
    return found;
  }
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0) {
    found.push_back({"compiler.cache", fine, "the cache " + folder + " is made when it is needed", ""});
    return found;
  }
  const auto bad = [&](const std::string& what, const std::string& cure) {
    found.push_back(
        {"compiler.cache", warning, "the cache " + folder + " " + what + ": it is not used", cure});
  };
  if (!S_ISDIR(info.st_mode)) {
    bad("is no directory", "remove it, or name another one in EAGLE_CACHE_DIR");
  } else if (info.st_uid != machine.uid) {
    bad("belongs to uid " + std::to_string(info.st_uid) + ", and you are " + std::to_string(machine.uid),
        "name one of your own in EAGLE_CACHE_DIR, or chown it");
  } else if ((info.st_mode & 0022) != 0) {
    bad("has the mode " + mode_text(info.st_mode) + ", and others could put code there",
        "chmod 700 " + folder);
  } else if ((info.st_mode & 0077) != 0) {
    found.push_back(
        {"compiler.cache", note,
         "the cache " + folder + " has the mode " + mode_text(info.st_mode) + ": others can read it",
         "chmod 700 " + folder});
  } else {
    found.push_back({"compiler.cache", fine, "the cache " + folder + " is yours alone", ""});
  }
  return found;
}

}  // namespace eagle::doctor
