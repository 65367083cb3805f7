#include <spdlog/spdlog.h>

#include <algorithm>
#include <span>
#include <utility>

#include "eagle/v1/service.grpc.pb.h"
#include "engine/graph/wire.h"
#include "engine/plane/copy_view.h"
#include "engine/plane/packed.h"
#include "server/rpc/service.h"
#include "server/rpc/services.h"
#include "server/rpc/transfer_call.h"

namespace eagle::server {
namespace {

// Unspecified: values travel alone.
v1::Transport transport_of(const Plane& plane) {
  using Sharing = run::cuda::DeviceMemory::Sharing;
  if (plane.gpu() == nullptr) return v1::TRANSPORT_MEMFD;
  if (plane.gpu()->imported()) return v1::TRANSPORT_CUDA_IMPORT;
  if (plane.read_only()) return v1::TRANSPORT_UNSPECIFIED;
  switch (plane.gpu()->memory().sharing()) {
    case Sharing::descriptor:
      return v1::TRANSPORT_CUDA_VMM_FD;
    case Sharing::ipc:
      return v1::TRANSPORT_CUDA_IPC;
    default:
      return v1::TRANSPORT_UNSPECIFIED;
  }
}

// Why a plane on a GPU is not opened, or not in the better way.
std::string why_not_opened(const Plane& plane) {
  const run::cuda::Driver& driver = plane.gpu()->unit()->device->driver();
  switch (transport_of(plane)) {
    case v1::TRANSPORT_CUDA_VMM_FD:
      return {};
    case v1::TRANSPORT_CUDA_IMPORT:
      return "the client's own memory, which the daemon has opened";
    case v1::TRANSPORT_CUDA_IPC:
      return driver.descriptors().ok() ? "no descriptor: " + text_of(plane.gpu()->unit()->info()) +
                                             " gives none of its memory to other processes"
                                       : "no descriptor: " + driver.descriptors().message();
    default:
      return plane.read_only() ? "granted for reading, and who opens memory of a GPU could write to it"
                               : driver.ipc().message();
  }
}

void describe(const Session& session, const Plane& plane, v1::PlaneInfo& message) {
  message.mutable_ref()->set_id(plane.id().id);
  message.mutable_ref()->set_generation(plane.id().generation);
  message.set_bytes(plane.size());
  message.set_label(plane.label());
  if (const GpuMemory* const gpu = plane.gpu()) {
    message.set_device(gpu->unit()->name());
    message.set_device_uuid(gpu->unit()->info().uuid);
  }
  if (!session.over_tcp()) message.set_transport(transport_of(plane));
}

void describe(const Session& session, const Plane& plane, v1::PlaneReach& message) {
  message.set_copied(session.over_tcp() || transport_of(plane) == v1::TRANSPORT_UNSPECIFIED);
  message.set_read_only(plane.read_only());
  std::string why = session.over_tcp() ? "no memfd: descriptors travel on the daemon's unix socket only" : "";
  if (plane.gpu() != nullptr) {
    if (why.empty()) why = why_not_opened(plane);
    message.set_opened_by(static_cast<std::uint32_t>(plane.bytes()->opened_by()));
  }
  const plane::HugePages& huge = plane.bytes()->huge_pages();
  if (!huge.why.empty()) why += (why.empty() ? "" : "; ") + huge.why;
  message.set_why(why);
  message.set_huge_bytes(huge.bytes);
}

// With a token for the descriptor, where one can reach the client.
void describe(const Session& session, const PlaneStore::Created& made, v1::PlaneInfo& message) {
  describe(session, *made.plane, message);
  if (!session.over_tcp()) message.set_token(made.token.data(), made.token.size());
}

template <typename Refs>
std::vector<graph::PlaneId> ids_of(const Refs& refs) {
  std::vector<graph::PlaneId> ids;
  for (const v1::PlaneRef& ref : refs) ids.push_back({ref.id(), ref.generation()});
  return ids;
}

bool imports(const v1::CreatePlanesRequest& request) {
  return std::any_of(request.planes().begin(), request.planes().end(),
                     [](const auto& spec) { return spec.has_import(); });
}

// Saturating: what is too much in all is too much.
std::uint64_t bytes_of(const v1::CreatePlanesRequest& request) {
  std::uint64_t bytes = 0;
  for (const auto& spec : request.planes()) {
    if (__builtin_add_overflow(bytes, spec.bytes(), &bytes)) return UINT64_MAX;
  }
  return bytes;
}

run::cuda::DeviceHandle handle_of(const v1::DeviceHandle& message) {
  run::cuda::DeviceHandle handle;
  handle.uuid = message.uuid();
  handle.ipc = message.ipc();
  handle.allocation = message.allocation();
  handle.offset = message.offset();
  handle.bytes = message.bytes();
  return handle;
}

Status check_import(const Session& session, const v1::CreatePlanesRequest::Spec& spec) {
  if (session.over_tcp()) {
    return {Reason::bad_value,
            "memory of a GPU cannot be imported over TCP; connect to the daemon's unix socket on the GPU's "
            "host, or copy the values"};
  }
  if (!spec.import().by_descriptor() && spec.bytes() == spec.import().bytes()) return {};
  return {Reason::bad_value, "expected an import of the plane's " + std::to_string(spec.bytes()) +
                                 " bytes by the 64 bytes of cuIpcGetMemHandle, found one of " +
                                 std::to_string(spec.import().bytes()) +
                                 (spec.import().by_descriptor() ? " by a descriptor" : "")};
}

Status create(Daemon& daemon, Session& session, const PendingCall& call,
              const v1::CreatePlanesRequest& request, v1::CreatePlanesReply& reply) {
  std::vector<PlaneStore::Spec> specs;
  for (const auto& spec : request.planes()) {
    specs.push_back({spec.bytes(), spec.label(), spec.may_be_uncleared(),
                     spec.huge_pages() ? plane::Memory::PageSize::huge : plane::Memory::PageSize::usual});
    if (spec.has_import()) {
      EAGLE_RETURN_IF_ERROR(check_import(session, spec));
      specs.back().imported = true;
      specs.back().gpu = [&daemon, &spec] {
        return daemon.gpus().import(handle_of(spec.import()),
                                    std::chrono::milliseconds(daemon.limits().import_ms));
      };
      continue;
    }
    if (!run::cuda::is_cpu(spec.device()))
      specs.back().gpu = [&daemon, &spec] { return daemon.gpus().make(spec.device(), spec.bytes()); };
  }
  EAGLE_ASSIGN_OR_RETURN(const auto made,
                         session.planes().create(specs, [&call] { return call.cancelled(); }));
  for (const PlaneStore::Created& created : made) {
    describe(session, created, *reply.add_planes());
    v1::PlaneRef& recycled = *reply.add_recycled();
    recycled.set_id(created.recycled.id);
    recycled.set_generation(created.recycled.generation);
  }
  if (!call.cancelled()) return {};
  // Nobody will hear of them.
  std::vector<graph::PlaneId> ids;
  for (const PlaneStore::Created& created : made) ids.push_back(created.plane->id());
  return session.planes().release(ids);
}

// Of the plane that is named beside it.
plane::View view_of(const v1::AcceptPlanesRequest::Part& part) {
  plane::View view = graph::unchecked_view(part.view());
  view.plane = 0;
  return view;
}

// All of them are looked at before the first is accepted.
Status accept(Session& session, const v1::AcceptPlanesRequest& request) {
  const auto limit = static_cast<int>(session.limits().planes_per_request);
  if (request.parts_size() > limit) {
    return {Reason::quota, "expected at most " + std::to_string(limit) +
                               " views in one request (planes_per_request), found " +
                               std::to_string(request.parts_size())};
  }
  for (const auto& part : request.parts()) {
    EAGLE_ASSIGN_OR_RETURN(const auto plane,
                           session.planes().find({part.plane().id(), part.plane().generation()}));
    EAGLE_RETURN_IF_ERROR(plane::check(view_of(part), plane->size()));
  }
  for (const auto& part : request.parts()) {
    EAGLE_RETURN_IF_ERROR(
        session.planes().accept({part.plane().id(), part.plane().generation()}, view_of(part)));
  }
  return {};
}

Status fill(Session& session, const PendingCall& call, const v1::FillRequest& request) {
  EAGLE_ASSIGN_OR_RETURN(const Slice slice, slice_of(session, request.slice(), true));
  const std::string& element = request.element();
  if (element.size() != slice.view.item_bytes) {
    return {Reason::bad_value, "fill: expected an element of " + std::to_string(slice.view.item_bytes) +
                                   " bytes, found " + std::to_string(element.size())};
  }
  const std::vector<std::byte> pattern = plane::repeated(std::as_bytes(std::span(element)));
  for (std::uint64_t at = 0; at < slice.packed.bytes() && !call.cancelled(); at += pattern.size()) {
    const std::size_t count = std::min<std::uint64_t>(pattern.size(), slice.packed.bytes() - at);
    EAGLE_RETURN_IF_ERROR(slice.plane->bytes()->write(slice.packed, at, std::span(pattern).first(count)));
  }
  return {};
}

// The plane that is published: the slice's own where nothing else lies in it and it is this session's, else a
// copy. `alone`: its owner says so, whose bytes they are.
struct ToPublish {
  PlaneStore::Created made;
  plane::View view;
  bool moved = false;
};
Status copy_slice(const Slice& slice, const ToPublish& to, const PendingCall& call) {
  const Status cancelled(Reason::cancelled, "the caller cancelled");
  if (slice.plane->gpu() == nullptr) {
    const bool whole = plane::copy_view(slice.view, slice.plane->data(), to.view, to.made.plane->data(),
                                        [&call] { return call.cancelled(); });
    return whole ? Status() : cancelled;
  }
  // By way of the host, a piece at a time.
  EAGLE_ASSIGN_OR_RETURN(const plane::Packed packed, plane::Packed::of(to.view));
  std::vector<std::byte> piece;
  constexpr std::uint64_t piece_bytes = 4u << 20;
  for (std::uint64_t at = 0; at < packed.bytes(); at += piece.size()) {
    if (call.cancelled()) return cancelled;
    piece.resize(std::min(piece_bytes, packed.bytes() - at));
    EAGLE_RETURN_IF_ERROR(slice.plane->bytes()->read(slice.packed, at, piece));
    EAGLE_RETURN_IF_ERROR(to.made.plane->bytes()->write(packed, at, piece));
  }
  return {};
}

StatusOr<ToPublish> to_publish(Daemon& daemon, Session& session, const PendingCall& call, const Slice& slice,
                               const std::string& name, bool alone) {
  ToPublish found;
  found.view = slice.view;
  found.view.strides = plane::row_major_strides(slice.view.shape, slice.view.item_bytes);
  alone = alone || (slice.view.offset == 0 && slice.packed.bytes() == slice.plane->size());
  // Memory that a client made goes when that client likes.
  const bool ours = !slice.plane->granted() && !(slice.plane->gpu() && slice.plane->gpu()->imported());
  if (alone && slice.view.strides == found.view.strides && ours) {
    found.made.plane = slice.plane;
    return found;
  }
  found.view.offset = 0;
  found.moved = true;
  PlaneStore::Spec spec{std::max<std::uint64_t>(slice.packed.bytes(), 1), name};
  if (slice.plane->gpu() != nullptr) {
    spec.gpu = [&] { return daemon.gpus().make(slice.plane->device(), spec.bytes); };
  }
  EAGLE_ASSIGN_OR_RETURN(auto made,
                         session.planes().create({&spec, 1}, [&call] { return call.cancelled(); }));
  found.made = std::move(made.front());
  const Status copied = copy_slice(slice, found, call);
  if (copied.ok()) return found;
  const graph::PlaneId id = found.made.plane->id();
  static_cast<void>(session.planes().release({&id, 1}));
  return copied;
}

Status publish(Daemon& daemon, const std::shared_ptr<Session>& session, const PendingCall& call,
               const v1::PublishRequest& request, v1::OpenedPlane& reply) {
  EAGLE_RETURN_IF_ERROR(daemon.accepts_work());
  EAGLE_ASSIGN_OR_RETURN(const Slice slice, slice_of(*session, request.slice(), false));
  EAGLE_ASSIGN_OR_RETURN(const ToPublish found,
                         to_publish(daemon, *session, call, slice, request.name(), request.alone()));
  const Plane& plane = *found.made.plane;
  const Status done = daemon.published().publish(session, request.name(),
                                                 {plane.bytes(),
                                                  found.view,
                                                  request.writable(),
                                                  {request.to().begin(), request.to().end()},
                                                  request.attempt()});
  if (!done.ok()) {
    const graph::PlaneId id = plane.id();
    if (found.moved) static_cast<void>(session->planes().release({&id, 1}));
    return done;
  }
  found.moved ? describe(*session, found.made, *reply.mutable_plane())
              : describe(*session, plane, *reply.mutable_plane());
  graph::to_message(found.view, *reply.mutable_view());
  reply.set_owner(session->principal().text());
  reply.set_moved(found.moved);
  if (const auto more = daemon.published().published_lines().admit())
    spdlog::info("published \"{}\" for {} more{}", loggable(request.name()), request.to_size(), *more);
  return {};
}

Status open(Daemon& daemon, const std::shared_ptr<Session>& session, const v1::OpenRequest& request,
            v1::OpenedPlane& reply) {
  EAGLE_ASSIGN_OR_RETURN(const Published::Opened opened,
                         daemon.published().open(session, request.name(), request.owner()));
  describe(*session, opened.plane, *reply.mutable_plane());
  graph::to_message(opened.view, *reply.mutable_view());
  reply.set_read_only(opened.read_only);
  reply.set_owner(opened.owner);
  return {};
}

// Finishes the call, now or once the bytes have been moved.
void withdraw(PendingCall& call, const v1::WithdrawRequest& request, v1::WithdrawReply& reply) {
  Daemon& daemon = call.daemon();
  const auto& session = call.session();
  auto bytes = daemon.withdraw(*session, request.name(), {request.from().begin(), request.from().end()});
  if (!bytes.ok()) return call.finish(bytes.status());
  if (request.seal_off() && (*bytes)->gpu() != nullptr) {
    return call.finish(
        {Reason::bad_value,
         "withdraw: '" + request.name() +
             "' lies on a GPU, whose memory cannot be moved away from who has opened it; it is "
             "withdrawn: release the array, and publish a new one"});
  }
  if (const auto more = daemon.published().withdrawn_lines().admit())
    spdlog::info("withdrew \"{}\"{}", loggable(request.name()), *more);
  if (!request.seal_off()) return call.finish({});
  daemon.seal_off(session, *bytes, request.name(),
                  [session, bytes = *bytes, &reply, held = call.shared()](const Status& moved) {
                    if (!moved.ok()) return held->finish(moved);
                    const auto again = session->planes().adopt("", bytes, false);
                    if (!again.ok()) return held->finish(again.status());
                    describe(*session, *again, *reply.mutable_moved());
                    held->finish({});
                  });
}

class PlanesService final : public Service {
public:
  explicit PlanesService(Daemon& daemon) : Service(daemon, v1::Planes::service_full_name()), daemon_(daemon) {
    make_and_release();
    publish_and_open();
    move_bytes();
  }

private:
  // Create and Release are not for gRPC's threads: the system may need long to find memory and take it back.
  void make_and_release() {
    unary("Create", [this](PendingCall& call, const v1::CreatePlanesRequest& request,
                           v1::CreatePlanesReply& reply) {
      work_on_pool(call, imports(request) ? daemon_.import_pool() : daemon_.memory_pool(bytes_of(request)),
                   [this, &request, &reply](Session& session, const PendingCall& made) {
                     return create(daemon_, session, made, request, reply);
                   });
    });
    unary("Release",
          [this](PendingCall& call, const v1::ReleasePlanesRequest& request, v1::ReleasePlanesReply&) {
            const std::uint64_t bytes = call.session()->planes().bytes_of(ids_of(request.planes()));
            on_pool(call, daemon_.memory_pool(bytes), [&request](Session& session, const PendingCall&) {
              return session.planes().release(ids_of(request.planes()));
            });
          });
    unary("Accept",
          [this](PendingCall& call, const v1::AcceptPlanesRequest& request, v1::AcceptPlanesReply&) {
            // Thousands of views, each compared with what is torn.
            on_pool(call, daemon_.memory_pool(0),
                    [&request](Session& session, const PendingCall&) { return accept(session, request); });
          });
    unary("List", [](PendingCall& call, const v1::ListPlanesRequest&, v1::ListPlanesReply& reply) {
      at_once(call, [&reply](Session& session) {
        for (const auto& plane : session.planes().list()) {
          describe(session, *plane, *reply.add_planes());
          describe(session, *plane, *reply.add_reach());
        }
        return Status();
      });
    });
    unary("Retain", [this](PendingCall& call, const v1::RetainRequest& request, v1::RetainReply&) {
      on_pool(call, daemon_.memory_pool(0), [this, &request](Session& session, const PendingCall&) {
        return daemon_.retain(session, request);
      });
    });
  }

  void publish_and_open() {
    unary("Publish", [this](PendingCall& call, const v1::PublishRequest& request, v1::OpenedPlane& reply) {
      on_pool(call, pool_of(*call.session(), request.slice(), false),
              [this, &request, &reply](Session& session, const PendingCall& made) {
                return publish(daemon_, session.shared_from_this(), made, request, reply);
              });
    });
    unary("Open", [this](PendingCall& call, const v1::OpenRequest& request, v1::OpenedPlane& reply) {
      at_once(call, [this, &request, &reply](Session& session) {
        return open(daemon_, session.shared_from_this(), request, reply);
      });
    });
    unary("Withdraw", withdraw);
  }

  void move_bytes() {
    stream<v1::PlaneChunk>("Read", read_call);
    stream_in<v1::WriteReply>("Write", write_call);
    unary("Fill", [this](PendingCall& call, const v1::FillRequest& request, v1::FillReply&) {
      on_pool(call, pool_of(*call.session(), request.slice(), true),
              [&request](Session& session, const PendingCall& made) { return fill(session, made, request); });
    });
  }

  // By what is to be moved, which with strides of 0 is more than lies in the plane.
  WorkPool& pool_of(Session& session, const v1::PlaneSlice& message, bool written) {
    const auto slice = slice_of(session, message, written);
    return daemon_.memory_pool(slice.ok() ? slice->packed.bytes() : 0);
  }

  Daemon& daemon_;
};

}  // namespace

std::unique_ptr<grpc::Service> make_planes_service(Daemon& daemon) {
  return std::make_unique<PlanesService>(daemon);
}

}  // namespace eagle::server
