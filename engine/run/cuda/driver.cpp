#include "engine/run/cuda/driver.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <utility>

namespace eagle::run::cuda {
namespace {

std::string library_name() {
  const char* named = std::getenv("EAGLE_CUDA_DRIVER");
  return named != nullptr && *named != '\0' ? named : "libcuda.so.1";
}

std::string text_of(const api::Uuid& uuid) {
  std::string text = "GPU-";
  for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    const auto byte = static_cast<unsigned char>(uuid.bytes[i]);
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

// Entry points of a library: by the driver's own table of versions, else by the name that each is exported
// under.
class Loader {
public:
  explicit Loader(void* library)
      : library_(library),
        by_version_(reinterpret_cast<api::GetProcAddress>(::dlsym(library, "cuGetProcAddress"))) {}

  template <typename Function>
  void take(Function*& function, const char* name, int version, const char* symbol) {
    void* found = nullptr;
    const bool known = by_version_ != nullptr && by_version_(name, &found, version, 0) == api::success;
    if (!known || found == nullptr) found = ::dlsym(library_, symbol);
    if (found == nullptr) missing_ += (missing_.empty() ? "" : ", ") + std::string(symbol);
    function = reinterpret_cast<Function*>(found);
  }
  [[nodiscard]] const std::string& missing() const { return missing_; }

private:
  void* library_;
  api::GetProcAddress by_version_;
  std::string missing_;
};

}  // namespace

std::string text_of(const DeviceInfo& info) {
  return "cuda:" + std::to_string(info.ordinal) + " (" + info.name + ", " + info.uuid + ")";
}

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

StatusOr<std::shared_ptr<const Driver>> Driver::open(bool* found) {
  const std::string name = library_name();
  void* const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (found != nullptr) *found = library != nullptr || name != "libcuda.so.1";
  if (library == nullptr) {
    const char* const why = ::dlerror();
    return Status(Reason::system, "no CUDA driver: " + std::string(why == nullptr ? name : why) +
                                      "; install NVIDIA's driver, or name its library in EAGLE_CUDA_DRIVER");
  }
  std::shared_ptr<Driver> driver(new Driver());
  driver->library_ = name;
  EAGLE_RETURN_IF_ERROR(driver->load(library));
  const api::Functions& call = driver->functions_;
  if (const api::Result result = call.cuInit(0); result != api::success && result != api::no_device)
    return driver->status(result, "cuInit");
  if (const api::Result result = call.cuDriverGetVersion(&driver->version_); result != api::success)
    return driver->status(result, "cuDriverGetVersion");
  driver->load_conditionals(library);
  driver->load_sharing(library);
  return std::shared_ptr<const Driver>(std::move(driver));
}

#define EAGLE_CUDA_LOAD(name, version, symbol, parameters) \
  loader.take(functions_.name, #name, version, #symbol);

Status Driver::load(void* library) {
  Loader loader(library);
  EAGLE_CUDA_FUNCTIONS(EAGLE_CUDA_LOAD)
  if (!loader.missing().empty()) {
    return {Reason::system, library_ + " lacks " + loader.missing() +
                                "; expected a driver for CUDA 11.0 or newer: update NVIDIA's driver"};
  }
  EAGLE_CUDA_GRAPH_FUNCTIONS(EAGLE_CUDA_LOAD)
  if (!loader.missing().empty()) {
    graphs_ = Status(Reason::system, library_ + " lacks " + loader.missing() +
                                         ", which graphs need; expected a driver for CUDA 11.4 or newer");
  }
  return {};
}

void Driver::load_conditionals(void* library) {
  Loader loader(library);
  EAGLE_CUDA_CONDITIONAL_FUNCTIONS(EAGLE_CUDA_LOAD)
  if (loader.missing().empty() && version_ >= api::conditional_version) return;
  conditionals_ = Status(Reason::system, library_ + " is a driver for CUDA " + version_text(version_) +
                                             ", and conditional nodes came with CUDA " +
                                             version_text(api::conditional_version));
}

void Driver::load_sharing(void* library) {
  const auto lacks = [this](const Loader& loader, const char* version) {
    if (loader.missing().empty()) return Status();
    return Status(Reason::system,
                  library_ + " lacks " + loader.missing() +
                      ", by which other processes open memory of a GPU; expected a driver for "
                      "CUDA " +
                      version + " or newer");
  };
  Loader descriptors(library);
  {
    Loader& loader = descriptors;
    EAGLE_CUDA_DESCRIPTOR_FUNCTIONS(EAGLE_CUDA_LOAD)
  }
  descriptors_ = lacks(descriptors, "10.2");
  Loader ipc(library);
  {
    Loader& loader = ipc;
    EAGLE_CUDA_IPC_FUNCTIONS(EAGLE_CUDA_LOAD)
  }
  ipc_ = lacks(ipc, "11.0");
}

#undef EAGLE_CUDA_LOAD

Status Driver::status(api::Result result, std::string_view what) const {
  const char* name = nullptr;
  const char* text = nullptr;
  functions_.cuGetErrorName(result, &name);
  functions_.cuGetErrorString(result, &text);
  const std::string said = std::string(what) + ": " + (name == nullptr ? std::to_string(result) : name) +
                           (text == nullptr ? "" : " (" + std::string(text) + ")");
  return {result == api::out_of_memory ? Reason::out_of_memory : Reason::system, said};
}

StatusOr<std::vector<DeviceInfo>> Driver::devices() const {
  int count = 0;
  const api::Result result = functions_.cuDeviceGetCount(&count);
  if (result == api::no_device || result == api::not_initialised) return std::vector<DeviceInfo>();
  if (result != api::success) return status(result, "cuDeviceGetCount");
  std::vector<DeviceInfo> all;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    EAGLE_ASSIGN_OR_RETURN(DeviceInfo one, device(ordinal));
    all.push_back(std::move(one));
  }
  return all;
}

StatusOr<DeviceInfo> Driver::device(int ordinal) const {
  DeviceInfo info;
  info.ordinal = ordinal;
  api::Device handle = 0;
  std::array<char, 256> name{};
  api::Uuid uuid{};
  std::size_t bytes = 0;
  const auto attribute = [&](int which, int& value) {
    return functions_.cuDeviceGetAttribute(&value, which, handle);
  };
  const std::string of = " of device " + std::to_string(ordinal);
  if (const api::Result result = functions_.cuDeviceGet(&handle, ordinal); result != api::success)
    return status(result, "cuDeviceGet" + of);
  for (const auto& [result, what] :
       {std::pair(functions_.cuDeviceGetName(name.data(), static_cast<int>(name.size()), handle),
                  "cuDeviceGetName"),
        std::pair(functions_.cuDeviceGetUuid(&uuid, handle), "cuDeviceGetUuid"),
        std::pair(functions_.cuDeviceTotalMem(&bytes, handle), "cuDeviceTotalMem"),
        std::pair(attribute(api::attribute_compute_capability_major, info.major), "cuDeviceGetAttribute"),
        std::pair(attribute(api::attribute_compute_capability_minor, info.minor), "cuDeviceGetAttribute"),
        std::pair(attribute(api::attribute_multiprocessors, info.multiprocessors), "cuDeviceGetAttribute")}) {
    if (result != api::success) return status(result, what + of);
  }
  // Older drivers do not know the question.
  int maps = 0, passes = 0;
  info.descriptors = descriptors_.ok() && attribute(api::attribute_virtual_memory, maps) == api::success &&
                     attribute(api::attribute_posix_descriptors, passes) == api::success && maps != 0 &&
                     passes != 0;
  info.name = name.data();
  info.uuid = text_of(uuid);
  info.bytes = bytes;
  return info;
}

}  // namespace eagle::run::cuda
