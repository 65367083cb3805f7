// A libcuda.so.1 that has no GPU: the entry points that the engine uses, on this CPU.
//
// It is as strict as a driver may be. Memory is not cleared; a launch does nothing before somebody waits for
// its stream, so that who does not wait sees old bytes; nodes of a graph run in any order that their parents
// allow, and threads in one that a seed makes up; an address that is not there, or not aligned, faults, and
// the context is lost from then on. Modules are PTX, read by ptx_program.h, and refused where the pretended
// driver or device is too old for them.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/run/cuda/driver_api.h"
#include "tests/fake_cuda/fake_device.h"
#include "tests/fake_cuda/ptx_machine.h"

namespace eagle::run::cuda::api {

struct ContextRecord {
  int ordinal = 0;
  int retained = 0;
  Result lost = success;  // what every call says from now on
  std::uint64_t allocated = 0;
};

struct FunctionRecord {
  ModuleRecord* module = nullptr;
  const fake_cuda::PtxFunction* entry = nullptr;
};

struct ModuleRecord {
  ContextRecord* context = nullptr;
  fake_cuda::PtxProgram program;
  std::vector<std::byte> globals;
  std::map<std::string, FunctionRecord, std::less<>> functions;
};

struct Work {
  FunctionRecord* function = nullptr;
  unsigned blocks = 1, threads = 1;
  std::vector<std::byte> parameters;
};

struct StreamRecord {
  ContextRecord* context = nullptr;
  std::vector<Work> waiting;
};

struct GraphNodeRecord {
  Work work;
  std::vector<const GraphNodeRecord*> parents;
};

struct GraphRecord {
  std::vector<std::unique_ptr<GraphNodeRecord>> nodes;
};

struct GraphExecRecord {
  struct Node {
    const GraphNodeRecord* made_of = nullptr;
    Work work;
    std::vector<std::size_t> parents;
  };
  std::vector<Node> nodes;
};

}  // namespace eagle::run::cuda::api

namespace eagle::fake_cuda {

const Pretence& pretence() {
  static const Pretence read = [] {
    Pretence made;
    const char* said = std::getenv("EAGLE_FAKE_CUDA");
    std::string_view text = said == nullptr ? "" : said;
    while (!text.empty()) {
      const std::string_view word = text.substr(0, text.find(','));
      text.remove_prefix(std::min(text.size(), word.size() + 1));
      const std::size_t equals = word.find('=');
      if (equals == std::string_view::npos) continue;
      const std::string_view name = word.substr(0, equals);
      const long long number = std::atoll(std::string(word.substr(equals + 1)).c_str());
      if (name == "devices") made.devices = static_cast<int>(number);
      if (name == "capability") made.capability = static_cast<int>(number);
      if (name == "version") made.version = static_cast<int>(number);
      if (name == "bytes") made.bytes = static_cast<std::uint64_t>(number);
      if (name == "fail_alloc") made.fail_alloc = number;
      if (name == "fail_launch") made.fail_launch = number;
      if (name == "fail_load") made.fail_load = number;
      if (name == "init") made.init = static_cast<int>(number);
      if (name == "seed") made.seed = static_cast<std::uint64_t>(number);
    }
    return made;
  }();
  return read;
}

namespace {

namespace api = run::cuda::api;
using api::Result;

struct Allocation {
  std::unique_ptr<std::byte[]> memory;
  std::uint64_t bytes = 0;
  api::ContextRecord* context = nullptr;
};

// Everything that the library holds, guarded by one lock: a driver may take turns.
struct World {
  std::recursive_mutex mutex;
  bool initialised = false;
  std::map<int, api::ContextRecord> contexts;
  std::map<std::uint64_t, Allocation> allocations;  // by address
  std::set<std::unique_ptr<api::ModuleRecord>> modules;
  std::set<std::unique_ptr<api::StreamRecord>> streams;
  std::set<std::unique_ptr<api::GraphRecord>> graphs;
  std::set<std::unique_ptr<api::GraphExecRecord>> execs;
  std::mt19937_64 order{pretence().seed};  // of nodes of graphs
  std::int64_t allocated = 0, launched = 0, loaded = 0;
};

World& world() {
  static World made;
  return made;
}

thread_local std::vector<api::ContextRecord*> current;

api::ContextRecord* here() { return current.empty() ? nullptr : current.back(); }

// With the lock, and a context that is well.
Result in_context(const std::function<Result(api::ContextRecord&)>& call) {
  const std::lock_guard lock(world().mutex);
  if (!world().initialised) return api::not_initialised;
  api::ContextRecord* context = here();
  if (context == nullptr || context->retained == 0) return api::invalid_context;
  return context->lost != api::success ? context->lost : call(*context);
}

template <typename Set, typename Record>
auto held(Set& all, const Record* record) {
  return std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.get() == record; });
}

// The bytes are those of one allocation.
bool is_there(std::uint64_t address, std::uint64_t bytes) {
  auto after = world().allocations.upper_bound(address);
  if (after == world().allocations.begin()) return false;
  const auto& [begin, allocation] = *--after;
  return address + bytes <= begin + allocation.bytes;
}

Result of(PtxFault fault) {
  switch (fault) {
    case PtxFault::illegal_address:
      return api::illegal_address;
    case PtxFault::misaligned_address:
      return api::misaligned_address;
    case PtxFault::out_of_time:
      return api::launch_timeout;
    default:
      return api::success;
  }
}

Result run(api::ContextRecord& context, const api::Work& work) {
  if (++world().launched == pretence().fail_launch) return context.lost = api::illegal_address;
  std::vector<MemoryRange> memory;
  for (const auto& [begin, allocation] : world().allocations)
    memory.push_back({begin, begin + allocation.bytes});
  PtxLaunch launch;
  launch.program = &work.function->module->program;
  launch.entry = work.function->entry;
  launch.globals = work.function->module->globals.data();
  launch.parameters = work.parameters;
  launch.blocks = work.blocks;
  launch.threads = work.threads;
  launch.memory = memory;
  launch.seed = pretence().seed + static_cast<std::uint64_t>(world().launched);
  const PtxOutcome outcome = run_ptx(launch);
  if (outcome.fault != PtxFault::none) std::fprintf(stderr, "fake_cuda: %s\n", outcome.text.c_str());
  return context.lost = of(outcome.fault);
}

// A kernel node's work, with a copy of its parameter; false where a driver would not take it.
bool work_of(const api::KernelNodeParams& params, api::Work& work) {
  const bool whole = params.grid_x > 0 && params.grid_y == 1 && params.grid_z == 1 && params.block_x > 0 &&
                     params.block_y == 1 && params.block_z == 1 && params.block_x <= 1024;
  if (!whole || params.function == nullptr || params.parameters == nullptr || params.extra != nullptr)
    return false;
  work = {params.function, params.grid_x, params.block_x, {}};
  work.parameters.resize(params.function->entry->parameter_bytes);
  std::memcpy(work.parameters.data(), params.parameters[0], work.parameters.size());
  return true;
}

// All nodes, each after its parents; else in any order.
void enqueue(const api::GraphExecRecord& exec, std::vector<api::Work>& waiting) {
  std::vector<bool> done(exec.nodes.size(), false);
  for (std::size_t left = exec.nodes.size(); left > 0; --left) {
    std::vector<std::size_t> ready;
    for (std::size_t i = 0; i < exec.nodes.size(); ++i) {
      const auto& parents = exec.nodes[i].parents;
      if (!done[i] &&
          std::all_of(parents.begin(), parents.end(), [&](std::size_t parent) { return done[parent]; }))
        ready.push_back(i);
    }
    const std::size_t next = ready[world().order() % ready.size()];
    done[next] = true;
    waiting.push_back(exec.nodes[next].work);
  }
}

// What the driver's compiler would refuse.
std::string refusal_of(const PtxProgram& program) {
  // PTX 8.4 came with CUDA 12.4 and so on; before, 7.N with 11.N (PTX ISA, release notes).
  const int known = pretence().version >= 12'000 ? 80 + pretence().version % 1000 / 10
                                                 : 70 + pretence().version % 1000 / 10;
  if (program.version > known) return "version";
  if (std::atoi(program.target.c_str() + 3) > pretence().capability) return "target";
  for (const PtxFunction& function : program.functions) {
    if (function.entry && function.parameter_bytes > 4352 && program.version < 81) return "parameters";
  }
  return {};
}

void say(unsigned options, const int* names, void** values, const std::string& text) {
  char* buffer = nullptr;
  std::size_t bytes = 0;
  for (unsigned i = 0; i < options; ++i) {
    if (names[i] == api::jit_error_log_buffer) buffer = static_cast<char*>(values[i]);
    if (names[i] == api::jit_error_log_buffer_bytes) bytes = reinterpret_cast<std::size_t>(values[i]);
  }
  if (buffer != nullptr && bytes > 0) std::snprintf(buffer, bytes, "%s", text.c_str());
}

const char* name_of(Result result) {
  switch (result) {
    case api::success:
      return "CUDA_SUCCESS";
    case api::invalid_value:
      return "CUDA_ERROR_INVALID_VALUE";
    case api::out_of_memory:
      return "CUDA_ERROR_OUT_OF_MEMORY";
    case api::not_initialised:
      return "CUDA_ERROR_NOT_INITIALIZED";
    case api::no_device:
      return "CUDA_ERROR_NO_DEVICE";
    case api::invalid_device:
      return "CUDA_ERROR_INVALID_DEVICE";
    case api::invalid_context:
      return "CUDA_ERROR_INVALID_CONTEXT";
    case api::no_binary_for_gpu:
      return "CUDA_ERROR_NO_BINARY_FOR_GPU";
    case api::invalid_ptx:
      return "CUDA_ERROR_INVALID_PTX";
    case api::unsupported_ptx_version:
      return "CUDA_ERROR_UNSUPPORTED_PTX_VERSION";
    case api::invalid_handle:
      return "CUDA_ERROR_INVALID_HANDLE";
    case api::not_found:
      return "CUDA_ERROR_NOT_FOUND";
    case api::illegal_address:
      return "CUDA_ERROR_ILLEGAL_ADDRESS";
    case api::misaligned_address:
      return "CUDA_ERROR_MISALIGNED_ADDRESS";
    case api::launch_timeout:
      return "CUDA_ERROR_LAUNCH_TIMEOUT";
    default:
      return "CUDA_ERROR_UNKNOWN";
  }
}

}  // namespace
}  // namespace eagle::fake_cuda

using namespace eagle::fake_cuda;  // NOLINT: the functions below have the driver's names
namespace api = eagle::run::cuda::api;
using api::Result;

extern "C" {

Result cuInit(unsigned flags) {
  const std::lock_guard lock(world().mutex);
  if (flags != 0) return api::invalid_value;
  if (pretence().init != 0) return pretence().init;
  world().initialised = true;
  return pretence().devices == 0 ? api::no_device : api::success;
}

Result cuDriverGetVersion(int* version) {
  *version = pretence().version;
  return api::success;
}

Result cuGetErrorName(Result error, const char** name) {
  *name = name_of(error);
  return api::success;
}

Result cuGetErrorString(Result, const char** text) {
  *text = "said by the fake driver";
  return api::success;
}

Result cuDeviceGetCount(int* count) {
  *count = pretence().devices;
  return world().initialised ? api::success : api::not_initialised;
}

Result cuDeviceGet(api::Device* device, int ordinal) {
  if (ordinal < 0 || ordinal >= pretence().devices) return api::invalid_device;
  *device = ordinal;
  return api::success;
}

Result cuDeviceGetName(char* name, int bytes, api::Device device) {
  std::snprintf(name, static_cast<std::size_t>(bytes), "fake GPU %d", device);
  return api::success;
}

Result cuDeviceGetUuid(api::Uuid* uuid, api::Device device) {
  std::memset(uuid->bytes, 0x5a, sizeof uuid->bytes);
  uuid->bytes[15] = static_cast<char>(device);
  return api::success;
}

Result cuDeviceTotalMem_v2(std::size_t* bytes, api::Device) {
  *bytes = pretence().bytes;
  return api::success;
}

Result cuDeviceGetAttribute(int* value, int attribute, api::Device) {
  if (attribute == api::attribute_compute_capability_major) {
    *value = pretence().capability / 10;
  } else if (attribute == api::attribute_compute_capability_minor) {
    *value = pretence().capability % 10;
  } else if (attribute == api::attribute_multiprocessors) {
    *value = 4;
  } else {
    return api::invalid_value;
  }
  return api::success;
}

Result cuDevicePrimaryCtxRetain(api::Context* context, api::Device device) {
  const std::lock_guard lock(world().mutex);
  api::ContextRecord& record = world().contexts[device];
  record.ordinal = device;
  ++record.retained;
  *context = &record;
  return api::success;
}

Result cuDevicePrimaryCtxRelease_v2(api::Device device) {
  const std::lock_guard lock(world().mutex);
  api::ContextRecord& record = world().contexts[device];
  if (record.retained == 0) return api::invalid_context;
  --record.retained;
  return api::success;
}

Result cuCtxPushCurrent_v2(api::Context context) {
  if (context == nullptr || context->retained == 0) return api::invalid_context;
  current.push_back(context);
  return api::success;
}

Result cuCtxPopCurrent_v2(api::Context* context) {
  if (current.empty()) return api::invalid_context;
  *context = current.back();
  current.pop_back();
  return api::success;
}

Result cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  return in_context([&](api::ContextRecord& context) {
    *total = pretence().bytes;
    *free = pretence().bytes - context.allocated;
    return api::success;
  });
}

Result cuMemAlloc_v2(api::DevicePointer* pointer, std::size_t bytes) {
  return in_context([&](api::ContextRecord& context) {
    if (bytes == 0) return api::invalid_value;
    const bool fails = ++world().allocated == pretence().fail_alloc;
    if (fails || bytes > pretence().bytes - context.allocated) return api::out_of_memory;
    constexpr std::uint64_t alignment = 256;
    Allocation allocation{std::make_unique<std::byte[]>(bytes + alignment), bytes, &context};
    const auto begin = reinterpret_cast<std::uint64_t>(allocation.memory.get());
    const std::uint64_t address = (begin + alignment - 1) / alignment * alignment;
    std::memset(reinterpret_cast<void*>(address), 0xa5, bytes);  // what was there before
    context.allocated += bytes;
    world().allocations[address] = std::move(allocation);
    *pointer = address;
    return api::success;
  });
}

Result cuMemFree_v2(api::DevicePointer pointer) {
  return in_context([&](api::ContextRecord&) {
    const auto found = world().allocations.find(pointer);
    if (found == world().allocations.end()) return api::invalid_value;  // interior pointers among them
    found->second.context->allocated -= found->second.bytes;
    world().allocations.erase(found);
    return api::success;
  });
}

Result cuMemcpyHtoD_v2(api::DevicePointer to, const void* from, std::size_t bytes) {
  return in_context([&](api::ContextRecord&) {
    if (!is_there(to, bytes)) return api::invalid_value;
    std::memcpy(reinterpret_cast<void*>(to), from, bytes);
    return api::success;
  });
}

Result cuMemcpyDtoH_v2(void* to, api::DevicePointer from, std::size_t bytes) {
  return in_context([&](api::ContextRecord&) {
    if (!is_there(from, bytes)) return api::invalid_value;
    std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
    return api::success;
  });
}

Result cuMemsetD8_v2(api::DevicePointer to, unsigned char value, std::size_t bytes) {
  return in_context([&](api::ContextRecord&) {
    if (!is_there(to, bytes)) return api::invalid_value;
    std::memset(reinterpret_cast<void*>(to), value, bytes);
    return api::success;
  });
}

Result cuModuleLoadDataEx(api::Module* module, const void* image, unsigned options, int* names,
                          void** values) {
  return in_context([&](api::ContextRecord& context) {
    if (++world().loaded == pretence().fail_load) {
      say(options, names, values, "ptxas fatal: it was told to fail");
      return api::invalid_ptx;
    }
    auto program = parse_ptx(static_cast<const char*>(image));
    if (!program.ok()) {
      say(options, names, values, program.status().message());
      return api::invalid_ptx;
    }
    const std::string refused = refusal_of(*program);
    if (refused == "version") return api::unsupported_ptx_version;
    if (refused == "target") return api::no_binary_for_gpu;
    if (!refused.empty()) {
      say(options, names, values, "too many bytes of parameters for this version of PTX");
      return api::invalid_ptx;
    }
    auto record = std::make_unique<api::ModuleRecord>();
    record->context = &context;
    record->program = *std::move(program);
    // Room to align, as the text may ask for.
    record->globals = record->program.globals;
    for (const PtxFunction& function : record->program.functions) {
      if (function.entry) record->functions[function.name] = {record.get(), &function};
    }
    *module = record.get();
    world().modules.insert(std::move(record));
    return api::success;
  });
}

Result cuModuleUnload(api::Module module) {
  return in_context([&](api::ContextRecord&) {
    const auto found = held(world().modules, module);
    if (found == world().modules.end()) return api::invalid_handle;
    world().modules.erase(found);
    return api::success;
  });
}

Result cuModuleGetFunction(api::Function* function, api::Module module, const char* name) {
  return in_context([&](api::ContextRecord&) {
    if (held(world().modules, module) == world().modules.end()) return api::invalid_handle;
    const auto found = module->functions.find(name);
    if (found == module->functions.end()) return api::not_found;
    *function = &found->second;
    return api::success;
  });
}

Result cuStreamCreate(api::Stream* stream, unsigned flags) {
  return in_context([&](api::ContextRecord& context) {
    if (flags > 1) return api::invalid_value;
    auto record = std::make_unique<api::StreamRecord>();
    record->context = &context;
    *stream = record.get();
    world().streams.insert(std::move(record));
    return api::success;
  });
}

Result cuStreamSynchronize(api::Stream stream) {
  return in_context([&](api::ContextRecord& context) {
    if (held(world().streams, stream) == world().streams.end()) return api::invalid_handle;
    const std::vector<api::Work> all = std::exchange(stream->waiting, {});
    for (const api::Work& work : all) {
      if (const Result result = run(context, work); result != api::success) return result;
    }
    return api::success;
  });
}

Result cuStreamDestroy_v2(api::Stream stream) {
  return in_context([&](api::ContextRecord&) {
    const auto found = held(world().streams, stream);
    if (found == world().streams.end()) return api::invalid_handle;
    world().streams.erase(found);
    return api::success;
  });
}

Result cuLaunchKernel(api::Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                      unsigned block_x, unsigned block_y, unsigned block_z, unsigned, api::Stream stream,
                      void** parameters, void** extra) {
  return in_context([&](api::ContextRecord&) {
    const bool whole =
        grid_x > 0 && grid_y == 1 && grid_z == 1 && block_x > 0 && block_y == 1 && block_z == 1;
    if (!whole || block_x > 1024 || extra != nullptr || parameters == nullptr) return api::invalid_value;
    if (held(world().streams, stream) == world().streams.end()) return api::invalid_handle;
    api::Work work{function, grid_x, block_x, {}};
    work.parameters.resize(function->entry->parameter_bytes);  // of one parameter: its bytes are there now
    std::memcpy(work.parameters.data(), parameters[0], work.parameters.size());
    stream->waiting.push_back(std::move(work));
    return api::success;
  });
}

Result cuGraphCreate(api::Graph* graph, unsigned flags) {
  return in_context([&](api::ContextRecord&) {
    if (flags != 0) return api::invalid_value;
    auto record = std::make_unique<api::GraphRecord>();
    *graph = record.get();
    world().graphs.insert(std::move(record));
    return api::success;
  });
}

Result cuGraphDestroy(api::Graph graph) {
  return in_context([&](api::ContextRecord&) {
    const auto found = held(world().graphs, graph);
    if (found == world().graphs.end()) return api::invalid_value;
    world().graphs.erase(found);
    return api::success;
  });
}

Result cuGraphAddKernelNode(api::GraphNode* node, api::Graph graph, const api::GraphNode* parents,
                            std::size_t count, const api::KernelNodeParams* parameters) {
  return in_context([&](api::ContextRecord&) {
    if (held(world().graphs, graph) == world().graphs.end()) return api::invalid_value;
    auto record = std::make_unique<api::GraphNodeRecord>();
    if (!work_of(*parameters, record->work)) return api::invalid_value;
    for (std::size_t i = 0; i < count; ++i) {
      const bool twice = std::find(parents, parents + i, parents[i]) != parents + i;
      if (twice || held(graph->nodes, parents[i]) == graph->nodes.end()) return api::invalid_value;
      record->parents.push_back(parents[i]);
    }
    *node = record.get();
    graph->nodes.push_back(std::move(record));
    return api::success;
  });
}

Result cuGraphInstantiateWithFlags(api::GraphExec* exec, api::Graph graph, unsigned long long flags) {
  return in_context([&](api::ContextRecord&) {
    if (flags != 0 || held(world().graphs, graph) == world().graphs.end()) return api::invalid_value;
    auto record = std::make_unique<api::GraphExecRecord>();
    for (const auto& node : graph->nodes) {
      api::GraphExecRecord::Node made{node.get(), node->work, {}};
      for (const api::GraphNodeRecord* parent : node->parents)
        made.parents.push_back(static_cast<std::size_t>(held(graph->nodes, parent) - graph->nodes.begin()));
      record->nodes.push_back(std::move(made));
    }
    *exec = record.get();
    world().execs.insert(std::move(record));
    return api::success;
  });
}

Result cuGraphExecKernelNodeSetParams(api::GraphExec exec, api::GraphNode node,
                                      const api::KernelNodeParams* parameters) {
  return in_context([&](api::ContextRecord&) {
    if (held(world().execs, exec) == world().execs.end()) return api::invalid_value;
    for (api::GraphExecRecord::Node& one : exec->nodes) {
      if (one.made_of == node) return work_of(*parameters, one.work) ? api::success : api::invalid_value;
    }
    return api::invalid_value;
  });
}

Result cuGraphLaunch(api::GraphExec exec, api::Stream stream) {
  return in_context([&](api::ContextRecord&) {
    if (held(world().execs, exec) == world().execs.end()) return api::invalid_value;
    if (held(world().streams, stream) == world().streams.end()) return api::invalid_handle;
    enqueue(*exec, stream->waiting);
    return api::success;
  });
}

Result cuGraphExecDestroy(api::GraphExec exec) {
  return in_context([&](api::ContextRecord&) {
    const auto found = held(world().execs, exec);
    if (found == world().execs.end()) return api::invalid_value;
    world().execs.erase(found);
    return api::success;
  });
}

Result cuGetProcAddress(const char* symbol, void** function, int version, std::uint64_t flags);
}

namespace {

struct Entry {
  const char* name;
  int version;
  void* address;
};

}  // namespace

extern "C" Result cuGetProcAddress(const char* symbol, void** function, int version, std::uint64_t flags) {
  static const std::array entries = {
#define EAGLE_FAKE_ENTRY(name, since, exported, parameters) \
  Entry{#name, since, reinterpret_cast<void*>(&::exported)},
      EAGLE_CUDA_FUNCTIONS(EAGLE_FAKE_ENTRY) EAGLE_CUDA_GRAPH_FUNCTIONS(EAGLE_FAKE_ENTRY)
#undef EAGLE_FAKE_ENTRY
  };
  *function = nullptr;
  if (flags != 0) return api::invalid_value;
  for (const Entry& entry : entries) {
    // What is newer than the pretended driver, or than what was asked for, is not there.
    if (std::strcmp(entry.name, symbol) == 0 && entry.version <= version &&
        entry.version <= pretence().version)
      *function = entry.address;
  }
  return *function == nullptr ? api::not_found : api::success;
}
