// What a host does that computes in this process and shares with nobody.
#include "client/host.h"

#include <unistd.h>

#include <string>
#include <utility>

#include "client/plane_registry.h"
#include "engine/plane/packed.h"

namespace eagle {
namespace {

// The array's elements, counted from its own address.
StatusOr<plane::Packed> packed_form(const ArrayView& array) {
  plane::View view;
  view.dtype = array.dtype;
  view.item_bytes = array.item_bytes;
  view.shape = array.shape;
  view.strides = array.strides;
  return plane::Packed::of(view);
}

Status wrong_size(std::uint64_t expected, std::size_t found) {
  return {Reason::bad_value, "expected room for " + std::to_string(expected) +
                                 " bytes, the array's elements, found " + std::to_string(found)};
}

Status unknown(std::string_view name) {
  return {Reason::unknown_name,
          "there is no published array '" + std::string(name) + "' that this caller may open"};
}

}  // namespace

StatusOr<std::shared_ptr<Buffer>> Host::import_on_device(const ImportedMemory& /*memory*/,
                                                         std::string_view /*label*/) {
  return Status(Reason::bad_value,
                "import: " + name() + " takes no memory of a GPU; copy the values to the host first");
}

StatusOr<std::shared_ptr<Buffer>> Host::allocate_on(std::string_view device, std::uint64_t /*bytes*/,
                                                    std::string_view /*label*/, Contents /*contents*/) {
  return Status(Reason::bad_value,
                "device '" + std::string(device) + "': " + name() + " has no GPU; use 'cpu'");
}

Status Host::fetch_packed(const ArrayView& array, std::span<std::byte> packed,
                          const TransferProgress& progress) {
  EAGLE_ASSIGN_OR_RETURN(const plane::Packed form, packed_form(array));
  if (form.bytes() != packed.size()) return wrong_size(form.bytes(), packed.size());
  form.read(static_cast<const std::byte*>(array.data), 0, packed);
  if (progress) static_cast<void>(progress(packed.size(), packed.size()));
  return {};
}

Status Host::send_packed(const ArrayView& array, std::span<const std::byte> packed,
                         const TransferProgress& progress) {
  EAGLE_ASSIGN_OR_RETURN(const plane::Packed form, packed_form(array));
  if (form.bytes() != packed.size()) return wrong_size(form.bytes(), packed.size());
  form.write(static_cast<std::byte*>(array.data), 0, packed);
  if (progress) static_cast<void>(progress(packed.size(), packed.size()));
  return {};
}

Status Host::fill(const ArrayView& array, std::span<const std::byte> element) {
  EAGLE_ASSIGN_OR_RETURN(const plane::Packed form, packed_form(array));
  if (element.size() != array.item_bytes) return wrong_size(array.item_bytes, element.size());
  for (std::uint64_t at = 0; at < form.bytes(); at += element.size()) {
    form.write(static_cast<std::byte*>(array.data), at, element);
  }
  return {};
}

StatusOr<PublishedArray> Host::publish(const ArrayView& array, std::string_view name, const PublishOptions&) {
  if (name.empty()) return Status(Reason::bad_value, "publish: expected a name, found an empty one");
  PublishedArray published{nullptr, array, "uid:" + std::to_string(::geteuid()), false};
  if (const auto address = find(array.data, 0)) published.buffer = address->keep_alive;
  if (!published.buffer) {
    return Status(Reason::private_array, "publish: '" + std::string(name) + "' is not an array of " +
                                             this->name() +
                                             "; make it with zeros, full or asarray of this session");
  }
  const std::scoped_lock lock(published_mutex_);
  if (!published_.try_emplace(std::string(name), published).second) {
    return Status(Reason::bad_value, "publish: '" + std::string(name) +
                                         "' is published already; withdraw it first, or choose another name");
  }
  return published;
}

StatusOr<PublishedArray> Host::open_published(std::string_view name, std::string_view owner) {
  const std::scoped_lock lock(published_mutex_);
  const auto found = published_.find(name);
  if (found == published_.end() || (!owner.empty() && owner != found->second.owner)) {
    return unknown(name).within("open");
  }
  return found->second;
}

Status Host::withdraw(std::string_view name, const WithdrawOptions& options) {
  const std::scoped_lock lock(published_mutex_);
  const auto found = published_.find(name);
  if (found == published_.end()) return unknown(name).within("withdraw");
  if (options.from.empty()) published_.erase(found);
  return {};
}

StatusOr<std::vector<SessionPlane>> Host::planes() { return PlaneRegistry::of_process().planes_of(name()); }

}  // namespace eagle
