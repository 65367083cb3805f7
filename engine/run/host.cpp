#include "engine/run/host.h"

#include <sched.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>

#include "engine/run/cgroup.h"
#include "engine/run/thread_limits.h"

namespace eagle::run {
namespace {

// CPUs that this thread may run on. The kernel's mask may be wider than the fixed cpu_set_t.
int affinity_cpus() {
  constexpr int widest = 1 << 20;
  for (int cpus = CPU_SETSIZE; cpus <= widest; cpus *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> mask(CPU_ALLOC(static_cast<std::size_t>(cpus)),
                                                                [](cpu_set_t* set) { CPU_FREE(set); });
    if (!mask) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(cpus));
    CPU_ZERO_S(bytes, mask.get());
    if (::sched_getaffinity(0, bytes, mask.get()) == 0) return CPU_COUNT_S(bytes, mask.get());
    if (errno != EINVAL) break;
  }
  return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

HostIdentity this_host() {
  std::array<char, 256> name{};  // names are at most 64 bytes long; the last byte stays 0
  if (::gethostname(name.data(), name.size() - 1) != 0) name[0] = '\0';
  return {::getpid(), name.data()};
}

int available_threads() {
  const char* omp = std::getenv("OMP_NUM_THREADS");
  return team_bound(affinity_cpus(), cgroup_cpus("/"), omp ? omp_num_threads(omp) : std::nullopt);
}

}  // namespace eagle::run
