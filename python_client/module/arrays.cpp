#include "arrays.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "errors.h"
#include "gil.h"

namespace eagle::python {
namespace {

// The element types of planes, as numpy's type strings say them.
struct ElementType {
  std::string_view name;
  std::string_view typestr;
  DType dtype;
};
constexpr std::array element_types = {
    ElementType{"float64", "<f8", DType::f64},  ElementType{"float32", "<f4", DType::f32},
    ElementType{"int64", "<i8", DType::i64},    ElementType{"int32", "<i4", DType::i32},
    ElementType{"bool", "|b1", DType::boolean},
};

// numpy's class. Never released: views may be made until the process ends.
struct Numpy {
  nb::handle array;
};
Numpy numpy;

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  throw StatusError({Reason::wrong_type, where + ": " + what});
}

void check_array(nb::handle array, const std::string& where) {
  if (nb::isinstance(array, numpy.array)) return;
  refuse(where, "expected a numpy array, found " + nb::cast<std::string>(array.type().attr("__name__")) +
                    "; make one with eagle.asarray(...)");
}

// numpy.ma is not imported for this: it takes as long as a third of eagle, and who has such an array has it.
bool is_masked(nb::handle array) {
  if (array.type().is(numpy.array)) return false;
  const nb::handle module = PyDict_GetItemString(PyImport_GetModuleDict(), "numpy.ma");
  return module.is_valid() && nb::isinstance(array, module.attr("MaskedArray"));
}

void check_kind(nb::handle array, const std::string& where) {
  check_array(array, where);
  if (is_masked(array)) {
    refuse(where, "a masked array has values that a node would not see; pass a.filled(value)");
  }
  if (nb::cast<bool>(array.attr("dtype").attr("hasobject"))) {
    refuse(where, "an array of Python objects; pass an array of numbers, for example a.astype(np.float64)");
  }
}

std::vector<std::int64_t> integers(nb::handle tuple) { return nb::cast<std::vector<std::int64_t>>(tuple); }

DType dtype_named(std::string_view typestr) {
  const auto known = std::find_if(element_types.begin(), element_types.end(),
                                  [&](const ElementType& type) { return type.typestr == typestr; });
  return known == element_types.end() ? DType::other : known->dtype;
}

std::shared_ptr<const void> hold(nb::handle object) { return {object.inc_ref().ptr(), give_up}; }

// A view of a scratch plane (eagle/_scratch.py): plane, offset, numpy's type string, item size, shape,
// strides.
ArrayView scratch_view_of(nb::handle scratch) {
  const nb::tuple parts = nb::cast<nb::tuple>(scratch.attr("__eagle_scratch__")());
  ArrayView view;
  view.scratch = nb::cast<std::shared_ptr<ScratchPlane>>(parts[0]);
  view.data = reinterpret_cast<void*>(static_cast<std::uintptr_t>(nb::cast<std::int64_t>(parts[1])));
  view.dtype = dtype_named(nb::cast<std::string>(parts[2]));
  view.item_bytes = nb::cast<std::uint32_t>(parts[3]);
  view.shape = integers(parts[4]);
  view.strides = integers(parts[5]);
  return view;
}

// An array on another machine (eagle/planes.py): a numpy array stands for its addresses.
bool is_plane(nb::handle array) {
  return !nb::isinstance(array, numpy.array) && nb::hasattr(array, "__eagle_plane__");
}

// What keeps an array's memory, and the Python object of its session.
struct Owner {
  std::shared_ptr<Buffer> buffer;
  nb::object session;
};

template <typename Byte>
nb::object bytes_over(Byte* memory, std::uint64_t bytes, std::unique_ptr<Owner> owner) {
  const nb::capsule base(owner.release(), [](void* held) noexcept { delete static_cast<Owner*>(held); });
  const nb::ndarray<nb::numpy, Byte, nb::ndim<1>> array(memory, {static_cast<std::size_t>(bytes)}, base);
  return nb::cast(array, nb::rv_policy::reference);
}

}  // namespace

void find_numpy() { numpy.array = nb::object(nb::module_::import_("numpy").attr("ndarray")).release(); }

const void* address_of(nb::handle array, const std::string& where) {
  if (is_plane(array)) return address_of(array.attr("__eagle_plane__")(), where);
  check_array(array, where);
  const nb::object data = array.attr("__array_interface__")["data"];
  return reinterpret_cast<const void*>(nb::cast<std::uintptr_t>(data[0]));
}

ArrayView view_of(nb::handle array, const std::string& where) {
  if (!nb::isinstance(array, numpy.array)) {
    if (nb::hasattr(array, "__eagle_scratch__")) return scratch_view_of(array);
    if (is_plane(array)) return view_of(array.attr("__eagle_plane__")(), where);
  }
  check_kind(array, where);
  const nb::object interface = array.attr("__array_interface__");
  const nb::object data = interface["data"];
  const std::string typestr = nb::cast<std::string>(interface["typestr"]);

  ArrayView view;
  view.data = reinterpret_cast<void*>(nb::cast<std::uintptr_t>(data[0]));
  view.read_only = nb::cast<bool>(data[1]);
  view.item_bytes = nb::cast<std::uint32_t>(array.attr("itemsize"));
  view.dtype = dtype_named(typestr);
  view.shape = integers(interface["shape"]);
  view.strides = integers(array.attr("strides"));
  view.owner = hold(array);
  return view;
}

nb::object allocate_array(const Session& session, const Shape& shape, std::string_view dtype,
                          std::string_view label, Contents contents, nb::object keep,
                          std::string_view device) {
  const auto type = std::find_if(element_types.begin(), element_types.end(),
                                 [&](const ElementType& known) { return known.name == dtype; });
  if (type == element_types.end()) {
    throw StatusError({Reason::wrong_dtype, "arrays hold float64, float32, int64, int32 or bool, not " +
                                                std::string(dtype) + "; choose one of those"});
  }
  const std::uint64_t bytes = take(Session::bytes_for(shape, plane::bytes_of(type->dtype)));
  std::shared_ptr<Buffer> buffer;
  {
    const Released released;
    buffer = take(session.allocate(std::max<std::uint64_t>(bytes, 1), label, contents, device));
  }
  auto* const memory = reinterpret_cast<std::uint8_t*>(buffer->data());
  auto owner = std::make_unique<Owner>(Owner{std::move(buffer), std::move(keep)});
  // numpy itself gives the bytes their type, so that the array's dtype is numpy's own.
  const nb::object as_bytes = bytes_over(memory, bytes, std::move(owner));
  return as_bytes.attr("view")(nb::str(dtype.data(), dtype.size())).attr("reshape")(nb::cast(shape));
}

nb::object imported_array(const Session& session, const ArrayOnDevice& array, nb::handle owner,
                          std::string_view label, nb::object keep) {
  const plane::Extent bytes =
      plane::extent({0, 0, plane::DType::other, array.item_bytes, array.shape, array.strides});
  ImportedMemory memory{array.pointer + static_cast<std::uint64_t>(bytes.first),
                        static_cast<std::uint64_t>(bytes.last - bytes.first), hold(owner)};
  std::shared_ptr<Buffer> buffer;
  std::uint64_t first = 0;
  {
    const Released released;
    buffer = take(session.import_on_device(memory, label));
    memory.owner.reset();
    first = take(buffer->on_device()).pointer;  // before ours in an array of the session
  }
  auto* const stand_in = reinterpret_cast<std::uint8_t*>(buffer->data()) + (memory.pointer - first);
  auto kept = std::make_unique<Owner>(Owner{std::move(buffer), std::move(keep)});
  const nb::object whole = array.read_only
                               ? bytes_over<const std::uint8_t>(stand_in, memory.bytes, std::move(kept))
                               : bytes_over<std::uint8_t>(stand_in, memory.bytes, std::move(kept));
  return numpy.array(nb::tuple(nb::cast(array.shape)), nb::str(array.typestr.c_str()), whole, -bytes.first,
                     nb::tuple(nb::cast(array.strides)));
}

nb::object published_array(PublishedArray array, nb::object keep) {
  const ArrayView& view = array.view;
  const auto type = std::find_if(element_types.begin(), element_types.end(),
                                 [&](const ElementType& known) { return known.dtype == view.dtype; });
  const std::string typestr =
      type == element_types.end() ? "V" + std::to_string(view.item_bytes) : std::string(type->typestr);
  // As an array over all of its memory, of which it may see any part.
  auto* const memory = reinterpret_cast<std::uint8_t*>(array.buffer->data());
  const std::uint64_t bytes = array.buffer->bytes();
  const std::int64_t offset = static_cast<std::uint8_t*>(view.data) - memory;
  auto owner = std::make_unique<Owner>(Owner{array.buffer, std::move(keep)});
  const nb::object whole = view.read_only ? bytes_over<const std::uint8_t>(memory, bytes, std::move(owner))
                                          : bytes_over<std::uint8_t>(memory, bytes, std::move(owner));
  return numpy.array(nb::tuple(nb::cast(view.shape)), nb::str(typestr.c_str()), whole, offset,
                     nb::tuple(nb::cast(view.strides)));
}

nb::object array_over(const ArrayView& view) {
  const auto type = std::find_if(element_types.begin(), element_types.end(),
                                 [&](const ElementType& known) { return known.dtype == view.dtype; });
  const std::string typestr =
      type == element_types.end() ? "V" + std::to_string(view.item_bytes) : std::string(type->typestr);
  const plane::Extent bytes = plane::extent({0, 0, view.dtype, view.item_bytes, view.shape, view.strides});
  auto* const first = static_cast<std::uint8_t*>(view.data) + bytes.first;
  const nb::capsule base(new std::shared_ptr<const void>(view.owner),
                         [](void* held) noexcept { delete static_cast<std::shared_ptr<const void>*>(held); });
  const auto size = static_cast<std::size_t>(bytes.last - bytes.first);
  const nb::object whole =
      view.read_only ? nb::cast(nb::ndarray<nb::numpy, const std::uint8_t, nb::ndim<1>>(first, {size}, base),
                                nb::rv_policy::reference)
                     : nb::cast(nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>(first, {size}, base),
                                nb::rv_policy::reference);
  return numpy.array(nb::tuple(nb::cast(view.shape)), nb::str(typestr.c_str()), whole, -bytes.first,
                     nb::tuple(nb::cast(view.strides)));
}

}  // namespace eagle::python
