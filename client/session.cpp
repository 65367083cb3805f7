#include "eagle/client/session.h"

#include <algorithm>
#include <optional>
#include <string>

#include "client/discovery.h"
#include "client/host.h"
#include "client/local_host.h"
#include "client/record/recording_host.h"
#include "client/view_table.h"
#include "eagle/v1/service.pb.h"
#include "engine/plane/packed.h"
#include "engine/run/cuda/devices.h"

namespace eagle {

StatusOr<std::shared_ptr<Buffer>> Session::allocate(std::uint64_t bytes, std::string_view label,
                                                    Contents contents, std::string_view device) const {
  if (run::cuda::is_cpu(device)) return host_->allocate(bytes, label, contents);
  return host_->allocate_on(device, bytes, label, contents);
}

StatusOr<std::shared_ptr<Buffer>> Session::import_on_device(const ImportedMemory& memory,
                                                            std::string_view label) const {
  if (memory.bytes == 0) {
    return Status(Reason::bad_value,
                  "import: expected at least one element, found none; make an empty array");
  }
  return host_->import_on_device(memory, label);
}

bool Session::copied(const ArrayView& array) const {
  if (copies()) return true;
  const auto address = host_->find(array.data, 0);
  return address && address->keep_alive->copied();
}

std::string Session::device_of(const void* address) const {
  const auto found = host_->find(address, 0);
  return found ? found->keep_alive->device() : std::string();
}

namespace {

Status not_of(const Session& session) {
  return {Reason::private_array, "expected an array of " + session.name() +
                                     ", found other memory; make one with zeros, full or asarray of it"};
}

}  // namespace

StatusOr<SessionPlane> Session::plane_of(const void* address) const {
  const auto found = host_->find(address, 0);
  if (!found) return not_of(*this);
  EAGLE_ASSIGN_OR_RETURN(const std::vector<SessionPlane> all, planes());
  const auto plane = std::find_if(all.begin(), all.end(), [&](const SessionPlane& one) {
    return one.id == found->plane.id && one.generation == found->plane.generation;
  });
  if (plane != all.end()) return *plane;
  return Status(Reason::unknown_plane, "the session does not hold the array '" + found->label + "' any more");
}

StatusOr<DeviceAddress> Session::on_device(const ArrayView& array) const {
  const auto found = host_->find(array.data, 0);
  if (!found) return not_of(*this);
  EAGLE_ASSIGN_OR_RETURN(DeviceAddress address, found->keep_alive->on_device());
  address.pointer +=
      static_cast<std::uint64_t>(static_cast<const std::byte*>(array.data) - found->keep_alive->data());
  return address;
}

bool Session::owns(const void* address) const { return host_->find(address, 1).has_value(); }

Status Session::accept(const ArrayView& array) const {
  ViewTable views(*host_);
  v1::View view;
  EAGLE_RETURN_IF_ERROR(views.add(array, "accept: the array", view));
  std::vector<v1::PlaneDeclaration> planes(1);
  Backing backing;
  views.finish([&]() -> v1::PlaneDeclaration& { return planes.front(); }, backing);
  if (!planes.front().has_plane()) return {};  // memory of the caller's own, of which no launch has a say
  v1::AcceptPlanesRequest request;
  auto& part = *request.add_parts();
  *part.mutable_plane() = planes.front().plane();
  *part.mutable_view() = view;
  return host_->accept(request);
}

const std::string& Session::name() const { return host_->name(); }
StatusOr<SessionInfo> Session::info() const { return host_->info(); }
StatusOr<std::vector<GraphInfo>> Session::graphs(GraphScope scope) const { return host_->graphs(scope); }
StatusOr<std::string> Session::picture(const GraphInfo& graph, PictureFormat format) const {
  return host_->picture(graph, format);
}
std::string Session::resume_token() const { return host_->resume_token(); }
Status Session::close() const { return host_->close(); }
bool Session::closed() const { return host_->closed(); }
bool Session::remote() const { return host_->remote(); }
bool Session::copies() const { return host_->copies(); }

namespace {

// What an array's own memory holds, where that is one piece.
std::optional<std::span<std::byte>> in_one_piece(const ArrayView& array, std::uint64_t bytes) {
  if (array.strides != plane::row_major_strides(array.shape, array.item_bytes)) return {};
  return std::span(static_cast<std::byte*>(array.data), static_cast<std::size_t>(bytes));
}

plane::View view_from_its_data(const ArrayView& array) {
  return {0, 0, array.dtype, array.item_bytes, array.shape, array.strides};
}

}  // namespace

Status Session::fetch(const ArrayView& array, const TransferProgress& progress) const {
  if (!copied(array)) return {};
  EAGLE_ASSIGN_OR_RETURN(const plane::Packed form, plane::Packed::of(view_from_its_data(array)));
  if (const auto piece = in_one_piece(array, form.bytes()))
    return host_->fetch_packed(array, *piece, progress);
  std::vector<std::byte> packed(form.bytes());
  EAGLE_RETURN_IF_ERROR(host_->fetch_packed(array, packed, progress));
  form.write(static_cast<std::byte*>(array.data), 0, packed);
  return {};
}

Status Session::send(const ArrayView& array, const TransferProgress& progress) const {
  if (!copied(array)) return {};
  EAGLE_ASSIGN_OR_RETURN(const plane::Packed form, plane::Packed::of(view_from_its_data(array)));
  if (const auto piece = in_one_piece(array, form.bytes()))
    return host_->send_packed(array, *piece, progress);
  std::vector<std::byte> packed(form.bytes());
  form.read(static_cast<const std::byte*>(array.data), 0, packed);
  return host_->send_packed(array, packed, progress);
}

Status Session::fetch_packed(const ArrayView& array, std::span<std::byte> packed,
                             const TransferProgress& progress) const {
  return host_->fetch_packed(array, packed, progress);
}
Status Session::send_packed(const ArrayView& array, std::span<const std::byte> packed,
                            const TransferProgress& progress) const {
  return host_->send_packed(array, packed, progress);
}
Status Session::fill(const ArrayView& array, std::span<const std::byte> element) const {
  return host_->fill(array, element);
}

StatusOr<PublishedArray> Session::publish(const ArrayView& array, std::string_view name,
                                          const PublishOptions& options) const {
  return host_->publish(array, name, options);
}
StatusOr<PublishedArray> Session::open(std::string_view name, std::string_view owner) const {
  return host_->open_published(name, owner);
}
Status Session::withdraw(std::string_view name, const WithdrawOptions& options) const {
  return host_->withdraw(name, options);
}
StatusOr<std::vector<SessionPlane>> Session::planes() const { return host_->planes(); }

StatusOr<std::uint64_t> Session::bytes_for(const Shape& shape, std::size_t item_bytes) {
  constexpr std::uint64_t most = std::uint64_t{1} << 62;
  bool empty = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0) {
      return Status(Reason::bad_value,
                    "an extent of " + std::to_string(extent) + " in an array's shape; extents start at 0");
    }
    empty = empty || extent == 0;
  }
  if (empty) return std::uint64_t{0};
  std::uint64_t bytes = item_bytes;
  for (const std::int64_t extent : shape) {
    if (static_cast<std::uint64_t>(extent) > most / bytes) {
      return Status(Reason::bad_value, "an array of over 2^62 bytes; check its shape");
    }
    bytes *= static_cast<std::uint64_t>(extent);
  }
  return bytes;
}

StatusOr<Session> connect(std::string_view endpoint, const ConnectOptions& options) {
  EAGLE_ASSIGN_OR_RETURN(auto host, discover(endpoint, options, Fallback::private_daemon));
  EAGLE_ASSIGN_OR_RETURN(host, record::recorded(std::move(host), options.recording));
  return Session(std::move(host));
}

StatusOr<Session> local(const LocalOptions& options) {
  EAGLE_ASSIGN_OR_RETURN(auto host, open_local(options));
  EAGLE_ASSIGN_OR_RETURN(host, record::recorded(std::move(host), options.recording));
  return Session(std::move(host));
}

}  // namespace eagle
