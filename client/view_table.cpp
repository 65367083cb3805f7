#include "client/view_table.h"

#include <algorithm>
#include <string>

#include "client/plane_registry.h"
#include "eagle/v1/plane.pb.h"

namespace eagle {
namespace {

__extension__ typedef __int128 Wide;

// What stands behind an array without elements, whose address may be anything: a plane has at least one
// byte, and nobody touches this one.
std::byte untouched{};
constexpr run::PlaneMemory no_elements{&untouched, 1};

// The bounding bytes [first, last) of a view; equal when it has no element.
struct Bounds {
  std::uintptr_t first = 0;
  std::uintptr_t last = 0;
};

StatusOr<Bounds> bounds_of(const ArrayView& array, std::string_view where) {
  const auto subject = [&] { return std::string(where); };
  if (array.shape.size() != array.strides.size()) {
    return Status(Reason::bad_value, subject() + " has " + std::to_string(array.shape.size()) +
                                         " extents and " + std::to_string(array.strides.size()) +
                                         " strides; give one stride in bytes for each extent");
  }
  if (array.shape.size() > plane::max_dimensions) {
    return Status(Reason::bad_value, subject() + " has " + std::to_string(array.shape.size()) +
                                         " dimensions; at most " + std::to_string(plane::max_dimensions) +
                                         " are possible");
  }
  for (const std::int64_t extent : array.shape) {
    if (extent < 0) {
      return Status(Reason::bad_value,
                    subject() + " has an extent of " + std::to_string(extent) + "; extents start at 0");
    }
  }
  const auto data = reinterpret_cast<std::uintptr_t>(array.data);
  if (std::find(array.shape.begin(), array.shape.end(), 0) != array.shape.end()) return Bounds{data, data};
  if (array.data == nullptr)
    return Status(Reason::bad_value, subject() + " has elements but no memory (null)");

  // At most 32 products of two 63-bit numbers: they fit into 128 bits with room to spare only one by one,
  // so each is held against the address space before the next is added.
  constexpr Wide address_space = Wide(1) << 62;
  Wide below = 0;
  Wide above = array.item_bytes;
  for (std::size_t axis = 0; axis < array.shape.size(); ++axis) {
    const Wide reach = Wide(array.shape[axis] - 1) * array.strides[axis];
    (reach < 0 ? below : above) += reach;
    if (below < -Wide(data) || Wide(data) + above > address_space) {
      return Status(Reason::view_outside_plane,
                    subject() + " reaches outside the address space along axis " + std::to_string(axis) +
                        " (extent " + std::to_string(array.shape[axis]) + ", stride " +
                        std::to_string(array.strides[axis]) + " bytes); check its shape and strides");
    }
  }
  return Bounds{static_cast<std::uintptr_t>(Wide(data) + below),
                static_cast<std::uintptr_t>(Wide(data) + above)};
}

void describe(const ArrayView& array, v1::View& message) {
  message.set_dtype(static_cast<v1::DType>(array.dtype));
  message.set_item_bytes(array.item_bytes);
  message.mutable_shape()->Add(array.shape.begin(), array.shape.end());
  message.mutable_strides()->Add(array.strides.begin(), array.strides.end());
}

}  // namespace

std::uint32_t ViewTable::index_of(const PlaneAddress& address) {
  const auto [it, fresh] =
      shared_index_.try_emplace(address.plane, static_cast<std::uint32_t>(shared_.size()));
  if (fresh)
    shared_.push_back(
        {address.plane, address.plane_bytes, address.label, address.alone ? address.begins : 0});
  return it->second;
}

std::uint32_t ViewTable::index_of(const std::shared_ptr<const ScratchPlane>& plane) {
  const auto [it, fresh] =
      scratch_index_.try_emplace(plane.get(), static_cast<std::uint32_t>(shared_.size()));
  if (fresh) {
    shared_.push_back({{}, plane->bytes, plane->name, 0});
    keep_alive_.push_back(plane);
  }
  return it->second;
}

Status ViewTable::add(const ArrayView& array, std::string_view where, v1::View& message) {
  if (array.scratch) {  // its offsets are judged where they are used
    describe(array, message);
    message.set_plane(index_of(array.scratch));
    message.set_offset(static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(array.data)));
    return {};
  }
  EAGLE_ASSIGN_OR_RETURN(const Bounds bounds, bounds_of(array, where));
  describe(array, message);
  if (array.owner) keep_alive_.push_back(array.owner);

  const std::uint64_t bytes = bounds.last - bounds.first;
  const auto data = reinterpret_cast<std::uintptr_t>(array.data);
  if (host_ == nullptr) {
    private_.push_back({bounds.first, bounds.last, data, &message});
    return {};
  }
  if (auto address = host_->find(reinterpret_cast<const void*>(bounds.first), bytes)) {
    message.set_plane(index_of(*address));
    message.set_offset(static_cast<std::int64_t>(address->offset + (data - bounds.first)));
    if (device_.empty()) device_ = address->keep_alive->device();
    keep_alive_.push_back(std::move(address->keep_alive));
    return {};
  }
  if (bytes > 0) {
    const auto other = PlaneRegistry::of_process().session_at(bounds.first, bounds.last);
    if (other == host_->name()) {
      return {Reason::view_outside_plane, std::string(where) + " reaches outside the array of " +
                                              host_->name() +
                                              " that it starts in; check its shape and strides"};
    }
    if (other) {
      return {Reason::mixed_sessions,
              std::string(where) + " lies in memory of " + *other + ", and this is " + host_->name() +
                  "; make all arrays of a graph or run in one session, or copy the values"};
    }
  }
  private_.push_back({bounds.first, bounds.last, data, &message});
  return {};
}

void ViewTable::finish(const std::function<v1::PlaneDeclaration&()>& declare, Backing& backing) {
  for (const SharedPlane& plane : shared_) {
    v1::PlaneDeclaration& declaration = declare();
    if (plane.id.id == 0) {
      declaration.mutable_scratch();
    } else {
      declaration.mutable_plane()->set_id(plane.id.id);
      declaration.mutable_plane()->set_generation(plane.id.generation);
    }
    declaration.set_bytes(plane.bytes);
    declaration.set_label(plane.label);
    declaration.set_begins(plane.begins);
    backing.private_planes.emplace_back();
  }

  std::sort(private_.begin(), private_.end(),
            [](const PrivateView& a, const PrivateView& b) { return a.first < b.first; });
  for (auto it = private_.begin(); it != private_.end();) {
    const std::uintptr_t first = it->first;
    std::uintptr_t last = it->last;
    const auto plane = static_cast<std::uint32_t>(backing.private_planes.size());
    do {
      it->message->set_plane(plane);
      it->message->set_offset(static_cast<std::int64_t>(it->data - first));
      last = std::max(last, it->last);
      ++it;
    } while (it != private_.end() && it->first < last);
    const run::PlaneMemory memory =
        first < last ? run::PlaneMemory{reinterpret_cast<std::byte*>(first), last - first} : no_elements;
    v1::PlaneDeclaration& declaration = declare();
    declaration.mutable_private_memory();
    declaration.set_bytes(memory.bytes);
    backing.private_planes.push_back(memory);
  }
  backing.keep_alive = std::move(keep_alive_);
  backing.device = std::move(device_);
}

}  // namespace eagle
