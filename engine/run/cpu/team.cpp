#include "engine/run/cpu/team.h"

#include <omp.h>

#include "engine/kernel/float_environment.h"

namespace eagle::run {

void run_team(int wanted, TeamBody call, const void* body) {
  if (wanted <= 1 || omp_in_parallel() != 0) {
    const kernel::FloatEnvironment environment;
    call(body, 0, 1);
    return;
  }
#pragma omp parallel num_threads(wanted)
  {
    const kernel::FloatEnvironment environment;
    call(body, omp_get_thread_num(), omp_get_num_threads());
  }
}

}  // namespace eagle::run
