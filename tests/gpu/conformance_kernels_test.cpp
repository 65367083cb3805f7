// Every kernel that the conformance suite compiles, fused ones among them: ptxas takes it for each
// architecture, and run as PTX it gives the interpreter's bits.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "eagle/v1/kernel.pb.h"
#include "engine/codegen/ptx.h"
#include "engine/kernel/interpret.h"
#include "engine/kernel/long_loops.h"
#include "engine/kernel/random_planes.h"
#include "engine/kernel/text.h"
#include "engine/kernel/verify.h"
#include "engine/run/cuda/launch_from_host.h"
#include "tests/gpu/ptxas.h"

namespace eagle::gpu_tests {
namespace {

using kernel::Kernel;
using kernel::Planes;

// Of the host `local`, which compiles in this machine's helper what all hosts compile. What its cases say is
// the conformance suite's business.
std::vector<Kernel> record() {
  std::string folder = (std::filesystem::temp_directory_path() / "eagle_kernels_XXXXXX").string();
  EXPECT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string command = "EAGLE_RECORDED_HELPER=\"$EAGLE_COMPILE_HELPER\" EAGLE_COMPILE_HELPER='" +
                              std::string(std::getenv("EAGLE_KERNEL_RECORDER")) + "' EAGLE_KERNEL_RECORDS='" +
                              folder + "' EAGLE_CACHE_DIR= '" + std::getenv("EAGLE_CONFORMANCE_TEST") +
                              "' --gtest_filter='*/local:*/local_*' >/dev/null 2>&1";
  (void)!std::system(command.c_str());
  std::vector<Kernel> kernels;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    std::ifstream stream(file.path(), std::ios::binary);
    v1::Kernel message;
    const bool parsed = message.ParseFromString(std::string(std::istreambuf_iterator<char>(stream), {}));
    const auto read = kernel::verify(message);
    EXPECT_TRUE(parsed && read.ok()) << read.status().to_string();
    if (read.ok()) kernels.push_back(*read);
  }
  std::filesystem::remove_all(folder);
  return kernels;
}

const std::vector<Kernel>& recorded() {
  static const std::vector<Kernel> kernels = record();
  return kernels;
}

std::vector<run::cuda::HostPlane> host_planes(Planes& planes) {
  std::vector<run::cuda::HostPlane> all;
  for (std::size_t a = 0; a < planes.bytes.size(); ++a) {
    all.push_back({planes.bytes[a], planes.bytes[a].empty() ? 0 : planes.element_bytes[a], planes.strides[a],
                   planes.lengths[a], planes.params[a]});
  }
  return all;
}

TEST(ConformanceKernels, AreAssembledAndGiveTheInterpretersBits) {
  ASSERT_GE(recorded().size(), 30u) << "the conformance suite compiled next to nothing";
  codegen::Compiler compiler;
  const auto driver = run::cuda::Driver::open();
  ASSERT_TRUE(driver.ok()) << driver.status().to_string();
  const auto device = run::cuda::Device::open(*driver, 0);
  ASSERT_TRUE(device.ok()) << device.status().to_string();
  run::cuda::DeviceModules modules(*device, compiler);
  constexpr std::int64_t samples = 41, steps = 2;
  std::size_t run = 0;
  for (const Kernel& kernel : recorded()) {
    SCOPED_TRACE(kernel::to_text(kernel));
    for (const char* arch : {"sm_75", "sm_80", "sm_90"}) {
      const auto ptx = codegen::ptx_of(compiler, kernel, arch);
      ASSERT_TRUE(ptx.ok()) << ptx.status().to_string();
      const Status assembled = assemble(*ptx, arch);
      ASSERT_TRUE(assembled.ok()) << assembled.message();
    }
    // Loops that only a cancel flag ends would take all day.
    if (kernel.shares() || kernel::trips_of(kernel.body) > 10'000) continue;
    kernel::Random random(20'260'101);
    Planes found = kernel::random_planes(kernel, samples, random);
    Planes wanted = found;
    const auto counts =
        run::cuda::launch_from_host(modules, kernel, host_planes(found), samples, steps, {0, samples, 0});
    ASSERT_TRUE(counts.ok()) << counts.status().to_string();
    kernel::interpret_launch(kernel, wanted.interpreter_planes(), samples, steps, {0, samples, 0});
    ASSERT_EQ(kernel::first_difference(kernel, found, wanted), "");
    ++run;
  }
  std::printf("%zu kernels assembled for three architectures, %zu of them run\n", recorded().size(), run);
  EXPECT_GE(run, 20u);
}

}  // namespace
}  // namespace eagle::gpu_tests
