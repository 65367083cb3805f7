#include "client/ctl/self_check.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <set>
#include <span>

#include "client/ctl/graph_check.h"
#include "client/record/contents.h"
#include "eagle/client/graph.h"
#include "eagle/client/session.h"
#include "engine/base/hex.h"
#include "engine/codegen/compiler.h"
#include "engine/codegen/device_arch.h"
#include "engine/engine.h"
#include "engine/kernel/random_kernel.h"
#include "engine/kernel/random_planes.h"
#include "engine/run/cuda/launch_from_host.h"
#include "engine/run/host.h"

namespace eagle::ctl {
namespace {

using kernel::Kernel;
using kernel::Planes;

constexpr std::uint64_t first_seed = 7'411;
constexpr int kernels = 32;
constexpr std::int64_t samples = 67;  // some whole blocks of every target, and a rest
constexpr std::int64_t steps = 3;
constexpr kernel::InterpreterPosition position{17, 5000, 4};

struct Case {
  Kernel kernel;
  Planes before;
  Planes after;  // as the interpreter has it
};

std::vector<Case> cases() {
  std::vector<Case> all;
  kernel::RandomKernelOptions options;
  options.shared = 0;  // `sums` is about those
  for (int i = 0; i < kernels; ++i) {
    const std::uint64_t seed = first_seed + static_cast<std::uint64_t>(i);
    kernel::Random random(seed);
    Case one;
    one.kernel = kernel::random_kernel(seed, options);
    one.before = kernel::random_planes(one.kernel, samples, random);
    one.after = one.before;
    const auto addresses = one.after.interpreter_planes();
    kernel::interpret_launch(one.kernel, addresses, samples, steps, position);
    all.push_back(std::move(one));
  }
  return all;
}

template <typename Real>
void one_nan(std::vector<std::byte>& bytes) {
  for (std::size_t at = 0; at + sizeof(Real) <= bytes.size(); at += sizeof(Real)) {
    Real value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    if (value == value) continue;
    value = std::numeric_limits<Real>::quiet_NaN();
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
}

// Which NaN a NaN is, is promised by nobody.
record::Digest digest_of(const std::vector<Case>& all) {
  std::vector<record::Digest> digests;
  for (const Case& one : all) {
    for (std::size_t i = 0; i < one.kernel.arguments.size(); ++i) {
      std::vector<std::byte> bytes = one.after.bytes[i];
      if (one.kernel.arguments[i].type.scalar == kernel::Scalar::f64) one_nan<double>(bytes);
      if (one.kernel.arguments[i].type.scalar == kernel::Scalar::f32) one_nan<float>(bytes);
      digests.push_back(record::digest_of(std::span<const std::byte>(bytes)));
    }
  }
  return record::digest_of(digests);
}

StatusOr<Check> check_target(codegen::Compiler& compiler, const codegen::Target& target,
                             const std::vector<Case>& all) {
  Check check{"kernels", target.cpu.empty() ? "native" : target.cpu, true, ""};
  int lanes = 0;
  for (const Case& one : all) {
    EAGLE_ASSIGN_OR_RETURN(const auto compiled, compiler.compile(one.kernel, target));
    lanes = std::max(lanes, compiled.code->lanes());
    Planes planes = one.before;
    const std::vector<std::byte*> addresses = planes.addresses();
    codegen::KernelCall call;
    call.planes = addresses.data();
    call.component_strides = planes.strides.data();
    call.params = planes.params.data();
    call.lengths = planes.lengths.data();
    call.end = samples;
    call.max_steps = steps;
    call.first_sample = position.first_sample;
    call.total_samples = position.total_samples;
    call.first_step = position.first_step;
    compiled.code->function()(&call);
    const std::string difference = kernel::first_difference(one.kernel, planes, one.after);
    if (difference.empty()) continue;
    check.passed = false;
    check.detail = "kernel " + one.kernel.name + ": " + difference;
    return check;
  }
  check.detail = std::to_string(all.size()) + " kernels, up to " + std::to_string(lanes) +
                 " samples a block: the interpreter's bits";
  return check;
}

// The same on a GPU.
Check check_device(codegen::Compiler& compiler, const std::shared_ptr<const run::cuda::Driver>& driver,
                   const run::cuda::DeviceInfo& info, const std::vector<Case>& all) {
  Check check{"kernels", "cuda:" + std::to_string(info.ordinal) + ", " + info.name, true, ""};
  const auto failed = [&](const std::string& why) {
    check.passed = false;
    check.detail = why;
    return check;
  };
  const auto device = run::cuda::Device::open(driver, info.ordinal);
  if (!device.ok()) return failed(device.status().message());
  run::cuda::DeviceModules modules(*device, compiler);
  for (const Case& one : all) {
    Planes planes = one.before;
    std::vector<run::cuda::HostPlane> addresses;
    for (std::size_t a = 0; a < planes.bytes.size(); ++a) {
      addresses.push_back({planes.bytes[a], planes.bytes[a].empty() ? 0 : planes.element_bytes[a],
                           planes.strides[a], planes.lengths[a], planes.params[a]});
    }
    const auto ran =
        run::cuda::launch_from_host(modules, one.kernel, addresses, samples, steps,
                                    {position.first_sample, position.total_samples, position.first_step});
    if (!ran.ok()) return failed("kernel " + one.kernel.name + ": " + ran.status().message());
    const std::string difference = kernel::first_difference(one.kernel, planes, one.after);
    if (!difference.empty()) return failed("kernel " + one.kernel.name + ": " + difference);
  }
  check.detail = std::to_string(all.size()) + " kernels: the interpreter's bits";
  return check;
}

// Graphs of them.
Check check_graphs(Engine& engine, codegen::Compiler& compiler,
                   const std::shared_ptr<const run::cuda::Driver>& driver,
                   const run::cuda::DeviceInfo& info) {
  constexpr std::uint64_t graphs = 25;
  Check check{"graphs", "cuda:" + std::to_string(info.ordinal) + ", " + info.name, false, ""};
  const auto device = run::cuda::Device::open(driver, info.ordinal);
  if (!device.ok()) {
    check.detail = device.status().message();
    return check;
  }
  run::cuda::DeviceModules modules(*device, compiler);
  std::size_t nodes = 0;
  for (std::uint64_t seed = first_seed; seed < first_seed + graphs; ++seed) {
    const auto one = check_graph(engine, modules, seed);
    check.detail =
        "graph " + std::to_string(seed) + ": " + (one.ok() ? one->difference : one.status().message());
    if (!one.ok() || !one->difference.empty()) return check;
    nodes += one->nodes;
  }
  check.passed = true;
  check.detail = std::to_string(graphs) + " graphs of " + std::to_string(nodes) +
                 " nodes, replayed and changed: the bits of the CPU";
  return check;
}

// Of those that are new enough for our kernels; `eaglectl doctor` says why another is not used.
Status check_devices(codegen::Compiler& compiler, const std::vector<Case>& all,
                     const std::function<void(const Check&)>& told) {
  const auto driver = run::cuda::Driver::open();
  if (!driver.ok()) return {};
  const auto devices = (*driver)->devices();
  if (!devices.ok()) return {};
  Engine::Options options;
  options.private_planes = graph::PrivateKernelPlanes::allowed;
  EAGLE_ASSIGN_OR_RETURN(const auto engine, Engine::create(std::move(options)));
  for (const run::cuda::DeviceInfo& info : *devices) {
    if (!codegen::device_arch_for(info.major, info.minor).ok()) continue;
    told(check_device(compiler, *driver, info, all));
    if ((*driver)->graphs().ok()) told(check_graphs(*engine, compiler, *driver, info));
  }
  return {};
}

// Sums of many reals, whose order must not depend on the team.
StatusOr<record::Digest> sums(int threads) {
  EAGLE_ASSIGN_OR_RETURN(const Session session, local({threads}));
  constexpr std::int64_t count = 100'003;
  EAGLE_ASSIGN_OR_RETURN(const Array<double> x, session.zeros<double>({count}));
  EAGLE_ASSIGN_OR_RETURN(const Array<double> plain, session.zeros<double>({1}));
  EAGLE_ASSIGN_OR_RETURN(const Array<double> compensated, session.zeros<double>({1}));
  kernel::Random random(first_seed);
  for (double& value : x.span())
    value = (static_cast<double>(random.below(1u << 30)) - 5e8) * (random.chance(10) ? 1e9 : 1e-3);
  Graph graph(session);
  EAGLE_RETURN_IF_ERROR(graph.add_node(reduce(x, plain), "plain"));
  EAGLE_RETURN_IF_ERROR(graph.add_node(reduce(x, compensated, {ReduceOp::sum, true}), "compensated"));
  EAGLE_RETURN_IF_ERROR(graph.build());
  EAGLE_RETURN_IF_ERROR(graph.launch().status());
  const std::array<double, 2> both = {plain[0], compensated[0]};
  return record::digest_of(std::as_bytes(std::span(both)));
}

}  // namespace

const Golden& golden() {
  // Digests of what the first release computes on x86-64. No outside source can have them: they are there to
  // show that a later release, compiler or host gives the same.
  static const Golden expected = {"b5319ac7289af7395235014be26b8dd5b95db90ab0ce65ed576aa9e1c7fbbf61",
                                  "f64b1986544cb9ad817a08e5d6cd1e754899a3a7e5043e201b3f7b7c8a682771"};
  return expected;
}

Status self_check(const Golden& expected, const std::function<void(const Check&)>& told) {
  const std::vector<Case> all = cases();
  const std::string found = to_hex(digest_of(all));
  told({"interpreter", "", found == expected.kernels,
        found == expected.kernels ? std::to_string(all.size()) + " kernels: the bits that every host gives"
                                  : "expected " + expected.kernels + ", found " + found});
  codegen::Compiler compiler;
  for (const codegen::Target& target : codegen::supported_targets()) {
    EAGLE_ASSIGN_OR_RETURN(const Check check, check_target(compiler, target, all));
    told(check);
  }
  EAGLE_RETURN_IF_ERROR(check_devices(compiler, all, told));
  for (const int threads : std::set<int>{1, 2, 3, run::available_threads()}) {
    const auto digest = sums(threads);
    EAGLE_RETURN_IF_ERROR(digest.status());
    const std::string sum = to_hex(*digest);
    told({"sums", std::to_string(threads) + (threads == 1 ? " thread" : " threads"), sum == expected.sums,
          sum == expected.sums ? "100,003 reals, plain and compensated: the bits that every host gives"
                               : "expected " + expected.sums + ", found " + sum});
  }
  return {};
}

}  // namespace eagle::ctl
