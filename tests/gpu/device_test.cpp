// The driver as the engine finds and uses it, and kernels run through it, with the fake driver for a GPU.
#include "engine/run/cuda/device.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "engine/codegen/compiler.h"
#include "engine/kernel/builder.h"
#include "engine/kernel/random_kernel.h"
#include "engine/kernel/random_planes.h"
#include "engine/kernel/scalar_math.h"
#include "engine/kernel/text.h"
#include "engine/kernel/typing.h"
#include "engine/run/cuda/launch_from_host.h"
#include "engine/run/cuda/pretend.h"

namespace eagle::run::cuda {
namespace {

using kernel::Kernel;
using kernel::Planes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::pretend;

// EAGLE_FAKE_CUDA is read once a process, so each test has a process of its own (ctest).
class Gpu : public ::testing::Test {
protected:
  std::shared_ptr<const Device> device() {
    const auto driver = Driver::open();
    EXPECT_TRUE(driver.ok()) << driver.status().to_string();
    const auto opened = Device::open(*driver, 0);
    EXPECT_TRUE(opened.ok()) << opened.status().to_string();
    return *opened;
  }
  codegen::Compiler compiler_;
};

std::vector<HostPlane> host_planes(Planes& planes) {
  std::vector<HostPlane> all;
  for (std::size_t a = 0; a < planes.bytes.size(); ++a) {
    all.push_back({planes.bytes[a], planes.bytes[a].empty() ? 0 : planes.element_bytes[a], planes.strides[a],
                   planes.lengths[a], planes.params[a]});
  }
  return all;
}

Kernel affine() {
  kernel::KernelBuilder b("affine");
  const auto x = b.scalar("x");
  b.output("y", b.add(b.mul(x, b.real(2.0)), b.real(1.0)));
  return *b.finish();
}

StatusOr<codegen::DeviceCounts> run_affine(const std::shared_ptr<const Device>& device,
                                           codegen::Compiler& compiler, std::vector<double>& x,
                                           std::vector<double>& y) {
  const std::vector<HostPlane> planes = {{std::as_writable_bytes(std::span(x)), 0, 0, 1, 0},
                                         {std::as_writable_bytes(std::span(y)), 0, 0, 1, 0}};
  DeviceModules modules(device, compiler);
  return launch_from_host(modules, affine(), planes, static_cast<std::int64_t>(x.size()), 1, {});
}

TEST_F(Gpu, AreToldApart) {
  pretend("devices=2,capability=80,version=12010");
  const auto driver = Driver::open();
  ASSERT_TRUE(driver.ok()) << driver.status().to_string();
  EXPECT_EQ(version_text((*driver)->version()), "12.1");
  const auto devices = (*driver)->devices();
  ASSERT_TRUE(devices.ok());
  ASSERT_EQ(devices->size(), 2u);
  EXPECT_EQ((*devices)[1].name, "fake GPU 1");
  EXPECT_EQ((*devices)[1].uuid, "GPU-5a5a5a5a-5a5a-5a5a-5a5a-5a5a5a5a5a01");
  EXPECT_EQ((*devices)[0].major, 8);
  const auto third = Device::open(*driver, 2);
  EXPECT_EQ(third.status().reason(), Reason::bad_value);
  EXPECT_THAT(third.status().message(), HasSubstr("expected cuda:0 to cuda:1"));
}

TEST_F(Gpu, AKernelRunsOverPlanesOfTheHost) {
  std::vector<double> x = {0, 1, 2, 3, 4, 5, 6, 7}, y(8, 0);
  const auto counts = run_affine(device(), compiler_, x, y);
  ASSERT_TRUE(counts.ok()) << counts.status().to_string();
  EXPECT_THAT(y, ElementsAre(1, 3, 5, 7, 9, 11, 13, 15));
  EXPECT_EQ(counts->steps, 1);
}

// The interpreter's bits, from the very PTX that a GPU would get: guards, masks, loops, tables, random
// numbers.
TEST_F(Gpu, RandomKernelsGiveTheInterpretersBits) {
  constexpr std::uint64_t first_seed = 553'001;
  const std::uint64_t count = std::getenv("EAGLE_LONG") == nullptr ? 60 : 5'000;
  DeviceModules modules(device(), compiler_);
  kernel::RandomKernelOptions options;
  options.shared = 0;
  for (std::uint64_t seed = first_seed; seed < first_seed + count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Kernel kernel = kernel::random_kernel(seed, options);
    kernel::Random random(seed);
    const std::int64_t samples = static_cast<std::int64_t>(random.below(600));
    const std::int64_t steps = 1 + static_cast<std::int64_t>(random.below(3));
    Planes found = kernel::random_planes(kernel, samples, random);
    Planes wanted = found;
    const kernel::InterpreterPosition position{17, 5000, 4};
    const auto counts =
        launch_from_host(modules, kernel, host_planes(found), samples, steps,
                         {position.first_sample, position.total_samples, position.first_step});
    ASSERT_TRUE(counts.ok()) << counts.status().to_string() << "\n" << kernel::to_text(kernel);
    const auto expected =
        kernel::interpret_launch(kernel, wanted.interpreter_planes(), samples, steps, position);
    ASSERT_EQ(kernel::first_difference(kernel, found, wanted), "") << kernel::to_text(kernel);
    ASSERT_EQ(counts->finished, expected.finished);
    ASSERT_EQ(counts->steps, expected.steps);
    ASSERT_EQ(counts->clamped, expected.clamped);
    ASSERT_EQ(counts->zero_divisions, expected.zero_divisions);
    ASSERT_EQ(counts->cancelled, 0);
  }
}

// Each math function over numbers of every size, in double and in single precision.
TEST_F(Gpu, MathFunctionsGiveTheInterpretersBits) {
  DeviceModules modules(device(), compiler_);
  int functions = 0;
  for (const kernel::Rule& rule : kernel::rules()) {
    if (!kernel::is_math(rule.code)) continue;
    ++functions;
    SCOPED_TRACE(rule.name);
    kernel::KernelBuilder b{std::string(rule.name)};
    std::vector<kernel::KernelBuilder::Value> doubles, singles;
    for (int k = 0; k < rule.operands; ++k)
      doubles.push_back(b.scalar(std::string(1, static_cast<char>('a' + k))));
    for (const auto& value : doubles) singles.push_back(b.convert(value, kernel::Scalar::f32));
    b.output("double", b.convert(b.op(rule.code, doubles), kernel::Scalar::f64));
    b.output("single", b.convert(b.op(rule.code, singles), kernel::Scalar::f64));
    const Kernel kernel = *b.finish();
    kernel::Random random(4'242);
    constexpr std::int64_t samples = 400;
    Planes found = kernel::random_planes(kernel, samples, random);
    Planes wanted = found;
    const auto counts = launch_from_host(modules, kernel, host_planes(found), samples, 1, {});
    ASSERT_TRUE(counts.ok()) << counts.status().to_string();
    kernel::interpret_launch(kernel, wanted.interpreter_planes(), samples, 1, {});
    EXPECT_EQ(kernel::first_difference(kernel, found, wanted), "");
  }
  EXPECT_EQ(functions, 42);
}

// ---- what goes wrong

TEST_F(Gpu, WithoutADriverItIsSaidThatThereIsNone) {
  ::setenv("EAGLE_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
  const auto driver = Driver::open();
  ASSERT_FALSE(driver.ok());
  EXPECT_EQ(driver.status().reason(), Reason::system);
  EXPECT_THAT(driver.status().message(), HasSubstr("/nowhere/libcuda.so.1"));
}

TEST_F(Gpu, ALibraryThatIsNoDriverIsRefusedByWhatItLacks) {
  ::setenv("EAGLE_CUDA_DRIVER", "libdl.so.2", 1);
  const auto driver = Driver::open();
  ASSERT_FALSE(driver.ok());
  EXPECT_THAT(driver.status().message(), HasSubstr("lacks cuInit"));
}

// cuDevicePrimaryCtxRelease_v2 came with CUDA 11.0; what a driver exports is found by name all the same.
TEST_F(Gpu, EntryPointsOfAnOldDriverAreFoundByName) {
  pretend("version=10020");
  EXPECT_TRUE(Driver::open().ok());
}

TEST_F(Gpu, NoDeviceIsAnEmptyList) {
  pretend("devices=0");
  const auto driver = Driver::open();
  ASSERT_TRUE(driver.ok()) << driver.status().to_string();
  EXPECT_TRUE((*driver)->devices()->empty());
  EXPECT_THAT(Device::open(*driver, 0).status().message(), HasSubstr("may use no GPU"));
}

TEST_F(Gpu, ADriverThatDoesNotStartSaysWhy) {
  pretend("init=999");
  EXPECT_THAT(Driver::open().status().message(), HasSubstr("cuInit: CUDA_ERROR_UNKNOWN"));
}

TEST_F(Gpu, MemoryThatIsNotThereIsRefusedWithBothSizes) {
  pretend("bytes=1000");
  const auto memory = DeviceMemory::create(device(), 2000);
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.status().reason(), Reason::out_of_memory);
  EXPECT_THAT(memory.status().message(), HasSubstr("1000 bytes free of 1000, and 2000 were asked for"));
}

TEST_F(Gpu, AnAllocationThatFailsLosesNothing) {
  pretend("fail_alloc=2");
  const std::shared_ptr<const Device> gpu = device();
  std::vector<double> x = {1, 2}, y(2, 0);
  EXPECT_EQ(run_affine(gpu, compiler_, x, y).status().reason(), Reason::out_of_memory);
  EXPECT_THAT(y, ElementsAre(0, 0));
  ASSERT_TRUE(run_affine(gpu, compiler_, x, y).ok());
  EXPECT_THAT(y, ElementsAre(3, 5));
}

TEST_F(Gpu, AFaultIsToldAndTheContextIsLost) {
  pretend("fail_launch=1");
  const std::shared_ptr<const Device> gpu = device();
  std::vector<double> x = {1, 2}, y(2, 0);
  EXPECT_THAT(run_affine(gpu, compiler_, x, y).status().message(), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
  EXPECT_THAT(y, ElementsAre(0, 0));
  EXPECT_THAT(run_affine(gpu, compiler_, x, y).status().message(), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
}

TEST_F(Gpu, WhatTheDriversCompilerSaysIsPassedOn) {
  pretend("fail_load=1");
  std::vector<double> x = {1}, y(1, 0);
  const auto refused = run_affine(device(), compiler_, x, y);
  EXPECT_EQ(refused.status().reason(), Reason::compile_failed);
  EXPECT_THAT(refused.status().message(), HasSubstr("told to fail"));
}

TEST_F(Gpu, ADeviceThatIsTooOldIsRefused) {
  pretend("capability=70");
  std::vector<double> x = {1}, y(1, 0);
  EXPECT_THAT(run_affine(device(), compiler_, x, y).status().message(), HasSubstr("7.0 is too old"));
}

TEST_F(Gpu, ADriverThatDoesNotKnowTheVersionOfPtxSaysSo) {
  pretend("capability=90,version=11040");  // sm_90 needs PTX 7.8, of CUDA 11.8
  std::vector<double> x = {1}, y(1, 0);
  EXPECT_THAT(run_affine(device(), compiler_, x, y).status().message(),
              HasSubstr("CUDA_ERROR_UNSUPPORTED_PTX_VERSION"));
}

// As many notes as loops of a million trips may make would need more memory than there is.
TEST_F(Gpu, AdditionsInLoopsWithoutABoundAreRefusedByName) {
  kernel::KernelBuilder b("histogram");
  const auto k = b.index("k");
  b.accumulator("h", {kernel::Scalar::f64});
  const auto carried = b.begin_while({b.integer(0)}, 1'000'000);
  const auto inside = b.while_condition(b.lt(carried[0], k));
  b.accum_add("h", b.real(1.0), {inside[0]});
  b.end_while({b.add(inside[0], b.integer(1))});
  const auto kernel = b.finish();
  ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
  DeviceModules modules(device(), compiler_);
  std::vector<std::int64_t> ks(1000, 3);
  std::vector<double> h(4, 0);
  const std::vector<HostPlane> planes = {{std::as_writable_bytes(std::span(ks)), 0, 0, 1000, 0},
                                         {std::as_writable_bytes(std::span(h)), 0, 0, 4, 0}};
  const auto refused = launch_from_host(modules, *kernel, planes, 1000, 1, {0, 1000, 0});
  EXPECT_EQ(refused.status().reason(), Reason::bad_value);
  EXPECT_THAT(refused.status().message(), HasSubstr("'histogram' adds to an accumulator in loops"));
  EXPECT_THAT(refused.status().message(), HasSubstr("max_trips"));
}

// Accumulators and reductions, in kernels of every other kind, too.
TEST_F(Gpu, KernelsWhoseSamplesShareGiveTheInterpretersBits) {
  constexpr std::uint64_t first_seed = 771'001;
  const std::uint64_t count = std::getenv("EAGLE_LONG") == nullptr ? 60 : 5'000;
  DeviceModules modules(device(), compiler_);
  kernel::RandomKernelOptions options;
  options.shared = 60;
  int ran = 0;
  for (std::uint64_t seed = first_seed; seed < first_seed + count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Kernel kernel = kernel::random_kernel(seed, options);
    kernel::Random random(seed);
    const std::int64_t samples = static_cast<std::int64_t>(random.below(120));
    const std::int64_t steps = 1 + static_cast<std::int64_t>(random.below(2));
    Planes found = kernel::random_planes(kernel, samples, random);
    Planes wanted = found;
    const auto counts =
        launch_from_host(modules, kernel, host_planes(found), samples, steps, {0, samples, 0});
    ASSERT_TRUE(counts.ok()) << counts.status().to_string() << "\n" << kernel::to_text(kernel);
    const auto expected =
        kernel::interpret_launch(kernel, wanted.interpreter_planes(), samples, steps, {0, samples, 0});
    ASSERT_EQ(kernel::first_difference(kernel, found, wanted), "") << kernel::to_text(kernel);
    ASSERT_EQ(counts->finished, expected.finished);
    ASSERT_EQ(counts->steps, expected.steps);
    ASSERT_EQ(counts->dropped, expected.dropped);
    ASSERT_EQ(counts->clamped, expected.clamped);
    ASSERT_EQ(counts->lost, 0);
    ran += kernel.shares() ? 1 : 0;
  }
  EXPECT_GE(ran, static_cast<int>(count) / 2);
}

TEST_F(Gpu, TheContextOfTheCallerIsCurrentAgainAfterwards) {
  pretend("devices=2");
  const std::shared_ptr<const Device> gpu = device();
  const api::Functions& call = gpu->driver().call();
  api::Context others = nullptr, found = nullptr;
  ASSERT_EQ(call.cuDevicePrimaryCtxRetain(&others, 1), api::success);
  ASSERT_EQ(call.cuCtxPushCurrent(others), api::success);
  std::vector<double> x = {1}, y(1, 0);
  ASSERT_TRUE(run_affine(gpu, compiler_, x, y).ok());
  ASSERT_EQ(call.cuCtxPopCurrent(&found), api::success);
  EXPECT_EQ(found, others);
}

}  // namespace
}  // namespace eagle::run::cuda
