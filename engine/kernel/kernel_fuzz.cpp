// Kernels from anywhere: refused with a reason, or one that can be kept, printed and run.
#include <google/protobuf/stubs/logging.h>

#include "eagle/v1/kernel.pb.h"
#include "engine/kernel/names.h"
#include "engine/kernel/testing_usable.h"
#include "engine/kernel/verify.h"
#include "engine/kernel/wire.h"
#include "tests/fuzz/target.h"

namespace eagle::fuzz {

std::vector<std::string> seeds() {
  std::vector<std::string> all;
  kernel::RandomKernelOptions options;
  options.ops = 12;
  for (std::uint64_t seed = 0; seed < 48; ++seed) {
    v1::Kernel message;
    kernel::to_message(kernel::random_kernel(seed, options), message);
    all.push_back(message.SerializeAsString());
  }
  return all;
}

}  // namespace eagle::fuzz

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned seed) {
  return eagle::fuzz::mutate_message<eagle::v1::Kernel>(data, size, most, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace eagle;
  const google::protobuf::LogSilencer silence;  // it logs names that are not UTF-8
  v1::Kernel message;
  if (!message.ParseFromArray(data, static_cast<int>(size))) return 0;
  const StatusOr<kernel::Kernel> found = kernel::verify(message);
  if (!found.ok()) {
    const Reason reason = found.status().reason();
    if (reason != Reason::malformed_kernel && reason != Reason::kernel_limit) {
      fuzz::broken(found.status().to_string());
    }
    if (!kernel::is_utf8(found.status().message())) fuzz::broken("an error that is not UTF-8");
    return 0;
  }
  kernel::Random random(size);
  const std::string problem = kernel::usable_problem(*found, random);
  if (!problem.empty()) fuzz::broken(problem);
  return 0;
}
