#include "engine/run/host.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/process.h"
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

std::string host_name() {
  std::array<char, 256> name{};  // names are at most 64 bytes long; the last byte stays 0
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

// Keeps threads until all that can be started are.
class Gate {
public:
  static void* wait(void* gate) {
    static_cast<Gate*>(gate)->open_.wait(false);
    return nullptr;
  }
  void open() {
    open_.store(true);
    open_.notify_all();
  }

private:
  std::atomic<bool> open_ = false;
};

}  // namespace

HostIdentity this_host() {
  static const std::string name = host_name();
  return {this_process(), name};
}

int startable_threads(int wanted) {
  if (wanted <= 1) return 1;
  Gate gate;
  std::vector<pthread_t> threads;
  const int asked = wanted - 1 + spare_threads;
  threads.reserve(static_cast<std::size_t>(asked));
  pthread_t thread{};
  while (static_cast<int>(threads.size()) < asked &&
         ::pthread_create(&thread, nullptr, Gate::wait, &gate) == 0) {
    threads.push_back(thread);
  }
  gate.open();
  for (const pthread_t started : threads) ::pthread_join(started, nullptr);
  return team_that_starts(wanted, static_cast<int>(threads.size()));
}

int available_threads() { return startable_threads(allowed_threads()); }

int allowed_threads() {
  const char* omp = std::getenv("OMP_NUM_THREADS");
  return team_bound(affinity_cpus(), cgroup_cpus("/"), omp ? omp_num_threads(omp) : std::nullopt);
}

}  // namespace eagle::run
