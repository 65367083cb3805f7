// A libcuda.so.1 that has no GPU: the entry points that the engine uses, on this CPU.
//
// It is as strict as a driver may be. Memory is not cleared; a launch does nothing before somebody waits for
// its stream or asks for it, so that who does not wait sees old bytes; nodes of a graph run in any order that
// their parents allow, and threads in one that a seed makes up; an address that is not there, or not aligned,
// faults, and the context is lost from then on. Modules are PTX, read by ptx_program.h, and refused where the
// pretended driver or device is too old for them.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "tests/fake_cuda/world.h"

namespace eagle::fake_cuda {
namespace {

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
    case api::unavailable:
      return "CUDA_ERROR_DEVICE_UNAVAILABLE";
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
    case api::not_ready:
      return "CUDA_ERROR_NOT_READY";
    case api::illegal_address:
      return "CUDA_ERROR_ILLEGAL_ADDRESS";
    case api::misaligned_address:
      return "CUDA_ERROR_MISALIGNED_ADDRESS";
    case api::launch_timeout:
      return "CUDA_ERROR_LAUNCH_TIMEOUT";
    case api::capture_unsupported:
      return "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED";
    case api::capture_invalidated:
      return "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED";
    case api::capture_unmatched:
      return "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED";
    case api::capture_unjoined:
      return "CUDA_ERROR_STREAM_CAPTURE_UNJOINED";
    case api::capture_isolation:
      return "CUDA_ERROR_STREAM_CAPTURE_ISOLATION";
    case api::capture_wrong_thread:
      return "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD";
    default:
      return "CUDA_ERROR_UNKNOWN";
  }
}

}  // namespace
}  // namespace eagle::fake_cuda

using namespace eagle::fake_cuda;  // NOLINT: the functions below have the driver's names

extern "C" {

Result cuInit(unsigned flags) {
  const std::lock_guard lock(world().mutex);
  if (flags != 0) return api::invalid_value;
  if (pretence().init != 0) return pretence().init;
  if (!world().initialised) world().gone = has_vanished() ? 1 : 0;
  world().initialised = true;
  return pretence().devices == world().gone ? api::no_device : api::success;
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
  *count = pretence().devices - world().gone;
  return world().initialised ? api::success : api::not_initialised;
}

Result cuDeviceGet(api::Device* device, int ordinal) {
  if (ordinal < 0 || ordinal >= pretence().devices - world().gone) return api::invalid_device;
  *device = ordinal;
  return api::success;
}

Result cuDeviceGetName(char* name, int bytes, api::Device device) {
  std::snprintf(name, static_cast<std::size_t>(bytes), "fake GPU %d", device + world().gone);
  return api::success;
}

Result cuDeviceGetUuid(api::Uuid* uuid, api::Device device) {
  std::memset(uuid->bytes, pretence().uuid, sizeof uuid->bytes);
  uuid->bytes[15] = static_cast<char>(device + world().gone);
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
  } else if (attribute == api::attribute_virtual_memory || attribute == api::attribute_posix_descriptors) {
    *value = pretence().descriptors ? 1 : 0;
  } else if (attribute == api::attribute_unified_addressing) {
    *value = 1;
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
  current().push_back(context);
  return api::success;
}

Result cuCtxPopCurrent_v2(api::Context* context) {
  if (current().empty()) return api::invalid_context;
  *context = current().back();
  current().pop_back();
  return api::success;
}

Result cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  return in_context([&](api::ContextRecord& context) {
    *total = pretence().bytes;
    *free = pretence().bytes - context.allocated;
    return api::success;
  });
}

Result cuModuleLoadDataEx(api::Module* module, const void* image, unsigned options, int* names,
                          void** values) {
  return in_context([&](api::ContextRecord& context) {
    if (spoils_capture(context)) return api::capture_unsupported;
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
}

using namespace eagle::run::cuda::api;  // NOLINT: for the types of parameters

extern "C" {
#define EAGLE_FAKE_DECLARED(name, since, exported, parameters) Result exported parameters;
EAGLE_CUDA_FUNCTIONS(EAGLE_FAKE_DECLARED)
EAGLE_CUDA_GRAPH_FUNCTIONS(EAGLE_FAKE_DECLARED)
EAGLE_CUDA_CONDITIONAL_FUNCTIONS(EAGLE_FAKE_DECLARED)
EAGLE_CUDA_DESCRIPTOR_FUNCTIONS(EAGLE_FAKE_DECLARED)
EAGLE_CUDA_IPC_FUNCTIONS(EAGLE_FAKE_DECLARED)
#undef EAGLE_FAKE_DECLARED
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
          EAGLE_CUDA_CONDITIONAL_FUNCTIONS(EAGLE_FAKE_ENTRY) EAGLE_CUDA_DESCRIPTOR_FUNCTIONS(EAGLE_FAKE_ENTRY)
              EAGLE_CUDA_IPC_FUNCTIONS(EAGLE_FAKE_ENTRY)
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
