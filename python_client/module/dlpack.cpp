// DLPack capsules, versioned and legacy, as numpy arrays over the same memory.
//
// The structs are the standard's (dmlc.github.io/dlpack), major version 1. A capsule that was taken is
// renamed, and its memory is given back when the last array over it goes.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arrays.h"
#include "bindings.h"
#include "eagle/client/session.h"
#include "engine/plane/packed.h"
#include "engine/plane/view.h"
#include "engine/run/cuda/devices.h"
#include "engine/run/cuda/foreign_memory.h"
#include "errors.h"
#include "gil.h"

namespace eagle::python {
namespace {

struct Device {
  std::int32_t kind;
  std::int32_t number;
};
struct TensorType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};
struct Tensor {
  void* data;
  Device device;
  std::int32_t dimensions;
  TensorType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null: row-major
  std::uint64_t byte_offset;
};
struct Legacy {
  Tensor tensor;
  void* context;
  void (*deleter)(Legacy*);
};
struct Versioned {
  std::uint32_t major;
  std::uint32_t minor;
  void* context;
  void (*deleter)(Versioned*);
  std::uint64_t flags;
  Tensor tensor;
};
constexpr std::uint64_t read_only_flag = 1;
constexpr std::uint64_t copied_flag = 2;
constexpr const char* versioned_name = "dltensor_versioned";
constexpr const char* legacy_name = "dltensor";

// What keeps the memory of a capsule that was taken.
struct Held {
  Legacy* legacy = nullptr;
  Versioned* versioned = nullptr;
  Held() = default;
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() {
    if (legacy != nullptr && legacy->deleter != nullptr) legacy->deleter(legacy);
    if (versioned != nullptr && versioned->deleter != nullptr) versioned->deleter(versioned);
  }
};

[[noreturn]] void refuse(const std::string& what) { throw StatusError({Reason::wrong_type, what}); }

std::string typestr_of(const TensorType& type) {
  const bool whole = type.bits % 8 == 0 && type.lanes == 1;
  const std::string bytes = std::to_string(type.bits / 8);
  const bool known = type.bits == 8 || type.bits == 16 || type.bits == 32 || type.bits == 64;
  if (whole && type.code == 0 && known) return "i" + bytes;
  if (whole && type.code == 1 && known) return "u" + bytes;
  if (whole && type.code == 2 && known && type.bits > 8) return "f" + bytes;
  if (whole && type.code == 5 && (type.bits == 64 || type.bits == 128)) return "c" + bytes;
  if (whole && type.code == 6 && type.bits == 8) return "b1";
  refuse("elements of DLPack type (code " + std::to_string(type.code) + ", " + std::to_string(type.bits) +
         " bits, " + std::to_string(type.lanes) +
         " lanes), which numpy has no name for; convert it, for example to float32");
}

// What a capsule holds, taken from it.
struct Taken {
  std::unique_ptr<Held> held = std::make_unique<Held>();
  Tensor tensor{};
  bool read_only = false;
  bool states_access = false;  // the capsule says who may write
  std::string typestr;
  std::int64_t item = 0;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  // in bytes
};

Taken take_capsule(const nb::capsule& capsule) {
  Taken taken;
  Held* const held = taken.held.get();
  Tensor& tensor = taken.tensor;
  const char* const name = capsule.name();
  if (name != nullptr && std::strcmp(name, versioned_name) == 0) {
    auto* const managed = static_cast<Versioned*>(capsule.data());
    if (managed->major != 1)
      refuse("a capsule of DLPack " + std::to_string(managed->major) +
             "; this eagle reads 1 and the legacy form");
    if ((managed->flags & copied_flag) != 0)
      refuse("it would export a copy, and its own memory is asked for");
    tensor = managed->tensor;
    taken.read_only = (managed->flags & read_only_flag) != 0;
    taken.states_access = true;
    held->versioned = managed;
  } else if (name != nullptr && std::strcmp(name, legacy_name) == 0) {
    auto* const managed = static_cast<Legacy*>(capsule.data());
    tensor = managed->tensor;
    held->legacy = managed;
  } else {
    refuse(std::string("expected a capsule named dltensor, found one named ") +
           (name == nullptr ? "nothing" : name) + "; a capsule can be taken once");
  }
  // From here on the memory is ours to give back.
  PyCapsule_SetName(capsule.ptr(), held->versioned != nullptr ? "used_dltensor_versioned" : "used_dltensor");

  if (tensor.dimensions < 0 || tensor.dimensions > plane::max_dimensions)
    refuse(std::to_string(tensor.dimensions) + " dimensions; at most " +
           std::to_string(plane::max_dimensions) + " are possible");
  taken.typestr = typestr_of(tensor.dtype);
  taken.item = static_cast<std::int64_t>(tensor.dtype.bits / 8);
  const auto dimensions = static_cast<std::size_t>(tensor.dimensions);
  taken.shape.assign(tensor.shape, tensor.shape + dimensions);
  taken.strides = plane::row_major_strides(taken.shape, static_cast<std::uint32_t>(taken.item));
  if (tensor.strides != nullptr) {
    for (std::size_t i = 0; i < dimensions; ++i) taken.strides[i] = tensor.strides[i] * taken.item;
  }
  return taken;
}

nb::capsule owner_of(Taken& taken) {
  return {taken.held.release(), [](void* memory) noexcept { delete static_cast<Held*>(memory); }};
}

// The array, and whether the capsule says who may write.
nb::tuple import_dlpack(const nb::capsule& capsule) {
  Taken taken = take_capsule(capsule);
  const Tensor& tensor = taken.tensor;
  const plane::View view{
      0, 0, plane::DType::other, static_cast<std::uint32_t>(taken.item), taken.shape, taken.strides};
  const plane::Extent bytes = plane::extent(view);
  auto* const first = static_cast<std::uint8_t*>(tensor.data) + tensor.byte_offset + bytes.first;
  const nb::capsule owner = owner_of(taken);
  const auto size = static_cast<std::size_t>(bytes.last - bytes.first);
  static std::uint8_t nothing = 0;  // under arrays without elements
  const nb::object whole =
      nb::cast(nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>(size == 0 ? &nothing : first, {size}, owner),
               nb::rv_policy::reference);
  const nb::object array = nb::module_::import_("numpy").attr("ndarray")(
      nb::tuple(nb::cast(taken.shape)), nb::str(taken.typestr.c_str()), whole, -bytes.first,
      nb::tuple(nb::cast(taken.strides)));
  if (taken.read_only) array.attr("flags").attr("writeable") = false;
  return nb::make_tuple(array, taken.states_access);
}

// Of memory wherever it is: ((kind, number) of the device, address, shape, strides in bytes, numpy's type
// string, bytes of an element, read-only, whether the capsule says so, what keeps the memory).
nb::tuple take_dlpack(const nb::capsule& capsule) {
  Taken taken = take_capsule(capsule);
  const auto address = reinterpret_cast<std::uintptr_t>(taken.tensor.data) + taken.tensor.byte_offset;
  return nb::make_tuple(nb::make_tuple(taken.tensor.device.kind, taken.tensor.device.number), address,
                        nb::tuple(nb::cast(taken.shape)), nb::tuple(nb::cast(taken.strides)), taken.typestr,
                        taken.item, taken.read_only, taken.states_access, owner_of(taken));
}

// The UUID of the GPU whose memory an address of this process is.
std::string gpu_of(std::uint64_t pointer) { return take(run::cuda::foreign_memory(pointer, 1)).gpu.uuid; }

// ---- arrays on GPUs, for others

// The array's first element for CUDA here: (pointer, ordinal, UUID).
nb::tuple on_device(const Session& session, nb::handle array) {
  const ArrayView view = view_of(array, "array");
  auto found = [&] {
    const Released released;
    return session.on_device(view);
  }();
  const DeviceAddress address = take(std::move(found));
  return nb::make_tuple(address.pointer, address.ordinal, address.uuid);
}

void wait_for_stream(const std::string& uuid, std::optional<std::uint64_t> stream) {
  const Status done = [&] {
    const Released released;
    return run::cuda::wait_for_stream(uuid, stream);
  }();
  check(done);
}

// What a capsule of ours keeps.
struct Given {
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  PyObject* owner = nullptr;
};
void let_go(void* context) {
  const std::unique_ptr<Given> given(static_cast<Given*>(context));
  give_up(given->owner);
}

TensorType type_of(const ArrayView& view) {
  const auto bits = static_cast<std::uint8_t>(8 * view.item_bytes);
  switch (view.dtype) {
    case DType::f64:
    case DType::f32:
      return {2, bits, 1};
    case DType::boolean:
      return {6, bits, 1};
    default:
      return {0, bits, 1};
  }
}

template <typename Managed>
nb::capsule capsule_of(std::unique_ptr<Managed> managed, const char* name) {
  // Whoever takes it renames it; what nobody took is ours to give back.
  PyObject* const made = PyCapsule_New(managed.get(), name, [](PyObject* capsule) {
    const char* const called = PyCapsule_GetName(capsule);
    if (called == nullptr || std::string_view(called).starts_with("used_")) return;
    auto* const untaken = static_cast<Managed*>(PyCapsule_GetPointer(capsule, called));
    untaken->deleter(untaken);
  });
  if (made == nullptr) throw nb::python_error();
  static_cast<void>(managed.release());
  return nb::steal<nb::capsule>(made);
}

// Memory on a GPU; `owner` keeps it for as long as somebody has the capsule's.
nb::capsule export_dlpack(const Session& session, nb::handle array, nb::handle owner, bool versioned) {
  const ArrayView view = view_of(array, "array");
  auto found = [&] {
    const Released released;
    return session.on_device(view);
  }();
  const DeviceAddress address = take(std::move(found));
  auto given = std::make_unique<Given>();
  given->shape = view.shape;
  const auto item = static_cast<std::int64_t>(view.item_bytes);
  for (const std::int64_t stride : view.strides) {
    if (stride % item != 0)
      refuse("strides of " + std::to_string(stride) + " bytes between elements of " + std::to_string(item) +
             ", which DLPack cannot say; copy the values (.numpy())");
    given->strides.push_back(stride / item);
  }
  Tensor tensor{};
  tensor.data = reinterpret_cast<void*>(static_cast<std::uintptr_t>(address.pointer));
  tensor.device = {2, address.ordinal};
  tensor.dimensions = static_cast<std::int32_t>(view.shape.size());
  tensor.dtype = type_of(view);
  tensor.shape = given->shape.data();
  tensor.strides = given->strides.data();
  given->owner = owner.inc_ref().ptr();
  if (versioned) {
    auto managed = std::make_unique<Versioned>();
    *managed = {1,
                0,
                given.release(),
                [](Versioned* self) {
                  let_go(self->context);
                  delete self;
                },
                view.read_only ? read_only_flag : 0,
                tensor};
    return capsule_of(std::move(managed), versioned_name);
  }
  auto managed = std::make_unique<Legacy>();
  *managed = {tensor, given.release(), [](Legacy* self) {
                let_go(self->context);
                delete self;
              }};
  return capsule_of(std::move(managed), legacy_name);
}

}  // namespace

void bind_dlpack(nb::module_& m) {
  m.def("import_dlpack", import_dlpack);
  m.def("take_dlpack", take_dlpack);
  m.def("gpu_of", gpu_of);
  m.def("on_device", on_device);
  m.def("export_dlpack", export_dlpack);
  m.def("wait_for_stream", wait_for_stream, nb::arg("uuid"), nb::arg("stream").none());
}

}  // namespace eagle::python
