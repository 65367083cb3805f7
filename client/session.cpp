#include "eagle/client/session.h"

#include <string>

#include "client/discovery.h"
#include "client/host.h"
#include "client/local_host.h"
#include "client/view_table.h"
#include "eagle/v1/service.pb.h"

namespace eagle {

StatusOr<std::shared_ptr<Buffer>> Session::allocate(std::uint64_t bytes, std::string_view label) const {
  return host_->allocate(bytes, label);
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
  return Session(std::move(host));
}

StatusOr<Session> local(const LocalOptions& options) {
  EAGLE_ASSIGN_OR_RETURN(auto host, open_local(options));
  return Session(std::move(host));
}

}  // namespace eagle
