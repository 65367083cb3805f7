#include "client/doctor/machine.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "client/endpoint.h"
#include "engine/base/unique_fd.h"
#include "engine/codegen/disk_cache.h"
#include "engine/codegen/helper_process.h"
#include "engine/plane/memfd.h"
#include "engine/run/host.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace eagle::doctor {
namespace {

constexpr std::size_t probe_bytes = 4096;

Limit limit_of(int resource) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return {};
  const auto value = [](rlim_t number) { return number == RLIM_INFINITY ? Limit::unlimited : number; };
  return {value(limit.rlim_cur), value(limit.rlim_max)};
}

Status failed(const char* what) { return {Reason::system, std::string(what) + ": " + std::strerror(errno)}; }

// Makes the file as large as a page, seals it, and maps it.
Status seal_and_map(int fd, int seals, int protection) {
  if (::ftruncate(fd, probe_bytes) != 0) return failed("ftruncate");
  if (::fcntl(fd, F_ADD_SEALS, seals) != 0) return failed("fcntl(F_ADD_SEALS)");
  void* const page = ::mmap(nullptr, probe_bytes, protection, MAP_SHARED, fd, 0);
  if (page == MAP_FAILED) return failed("mmap");
  ::munmap(page, probe_bytes);
  return {};
}

Status probe_plane() {
  EAGLE_ASSIGN_OR_RETURN(const UniqueFd fd, plane::make_memfd("eaglectl doctor"));
  return seal_and_map(fd.get(), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, PROT_READ | PROT_WRITE);
}

// As engine/codegen hands code over.
Status probe_code() {
  const UniqueFd fd(::memfd_create("eaglectl doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return failed("memfd_create");
  return seal_and_map(fd.get(), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL,
                      PROT_READ | PROT_EXEC);
}

bool knows_noexec() {
  const UniqueFd fd(::memfd_create("eaglectl doctor", MFD_CLOEXEC | MFD_NOEXEC_SEAL));
  return fd.valid();
}

void look_for_gpus(Machine& machine) {
  bool found = false;
  const auto driver = run::cuda::Driver::open(&found);
  if (!driver.ok()) {
    if (found) machine.cuda_driver = driver.status();
    return;
  }
  machine.cuda_library = (*driver)->library();
  machine.cuda_version = (*driver)->version();
  machine.cuda_graphs = (*driver)->graphs();
  machine.cuda_conditionals = (*driver)->conditionals();
  auto gpus = (*driver)->devices();
  machine.cuda_driver = gpus.ok() ? Status() : gpus.status();
  if (gpus.ok()) machine.gpus = *std::move(gpus);
}

}  // namespace

Machine this_machine() {
  Machine machine;
  utsname name{};
  if (::uname(&name) == 0) machine.kernel_release = name.release;
  machine.uid = ::geteuid();
  machine.memlock = limit_of(RLIMIT_MEMLOCK);
  machine.nofile = limit_of(RLIMIT_NOFILE);
  machine.nproc = limit_of(RLIMIT_NPROC);
  machine.cpus = static_cast<int>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  machine.threads = run::allowed_threads();
  machine.ram = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  machine.memfd = probe_plane();
  machine.memfd_noexec = knows_noexec();
  machine.code_memfd = probe_code();
  machine.helper = codegen::find_helper();
  machine.cache_directory = codegen::DiskCache::default_directory();
  if (const char* const folder = std::getenv("XDG_RUNTIME_DIR"); folder != nullptr)
    machine.runtime_dir = folder;
  look_for_gpus(machine);
  for (const Endpoint& endpoint : default_endpoints()) machine.endpoints.push_back(endpoint.text());
  return machine;
}

}  // namespace eagle::doctor
