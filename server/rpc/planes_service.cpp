#include <utility>

#include "eagle/v1/service.grpc.pb.h"
#include "server/rpc/call.h"
#include "server/rpc/services.h"

namespace eagle::server {
namespace {

void describe(const Plane& plane, v1::PlaneInfo& message) {
  message.mutable_ref()->set_id(plane.id().id);
  message.mutable_ref()->set_generation(plane.id().generation);
  message.set_bytes(plane.memory().bytes());
  message.set_label(plane.label());
  message.set_transport(v1::TRANSPORT_MEMFD);
}

template <typename Refs>
std::vector<graph::PlaneId> ids_of(const Refs& refs) {
  std::vector<graph::PlaneId> ids;
  for (const v1::PlaneRef& ref : refs) ids.push_back({ref.id(), ref.generation()});
  return ids;
}

// Saturating: what is too much in all is too much.
std::uint64_t bytes_of(const v1::CreatePlanesRequest& request) {
  std::uint64_t bytes = 0;
  for (const auto& spec : request.planes()) {
    if (__builtin_add_overflow(bytes, spec.bytes(), &bytes)) return UINT64_MAX;
  }
  return bytes;
}

Status create(Session& session, const PendingCall& call, const v1::CreatePlanesRequest& request,
              v1::CreatePlanesReply& reply) {
  std::vector<PlaneStore::Spec> specs;
  for (const auto& spec : request.planes()) specs.push_back({spec.bytes(), spec.label()});
  EAGLE_ASSIGN_OR_RETURN(const auto made,
                         session.planes().create(specs, [&call] { return call.cancelled(); }));
  for (const PlaneStore::Created& created : made) {
    v1::PlaneInfo& plane = *reply.add_planes();
    describe(*created.plane, plane);
    plane.set_token(created.token.data(), created.token.size());
  }
  if (!call.cancelled()) return {};
  // Nobody will hear of them.
  std::vector<graph::PlaneId> ids;
  for (const PlaneStore::Created& created : made) ids.push_back(created.plane->id());
  return session.planes().release(ids);
}

plane::View view_of(const v1::View& message) {
  return {0,
          message.offset(),
          static_cast<plane::DType>(message.dtype()),
          message.item_bytes(),
          {message.shape().begin(), message.shape().end()},
          {message.strides().begin(), message.strides().end()}};
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
    EAGLE_RETURN_IF_ERROR(plane::check(view_of(part.view()), plane->memory().bytes()));
  }
  for (const auto& part : request.parts()) {
    EAGLE_RETURN_IF_ERROR(
        session.planes().accept({part.plane().id(), part.plane().generation()}, view_of(part.view())));
  }
  return {};
}

class PlanesService final : public v1::Planes::CallbackService {
public:
  explicit PlanesService(Daemon& daemon) : daemon_(daemon) {}

  // Create and Release are not for gRPC's threads: the system may need long to find memory and take it back.
  grpc::ServerUnaryReactor* Create(grpc::CallbackServerContext* context,
                                   const v1::CreatePlanesRequest* request,
                                   v1::CreatePlanesReply* reply) override {
    return on_pool(daemon_, daemon_.memory_pool(bytes_of(*request)), *context,
                   [this, request, reply](Session& session, const PendingCall& call) {
                     EAGLE_RETURN_IF_ERROR(daemon_.accepts_work());
                     return create(session, call, *request, *reply);
                   });
  }

  grpc::ServerUnaryReactor* Release(grpc::CallbackServerContext* context,
                                    const v1::ReleasePlanesRequest* request,
                                    v1::ReleasePlanesReply*) override {
    const auto pool = [this, request](Session& session) -> WorkPool& {
      return daemon_.memory_pool(session.planes().bytes_of(ids_of(request->planes())));
    };
    return on_pool(daemon_, pool, *context, [request](Session& session, const PendingCall&) {
      return session.planes().release(ids_of(request->planes()));
    });
  }

  grpc::ServerUnaryReactor* Accept(grpc::CallbackServerContext* context,
                                   const v1::AcceptPlanesRequest* request, v1::AcceptPlanesReply*) override {
    return at_once(daemon_, *context, [request](Session& session) { return accept(session, *request); });
  }

  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context, const v1::ListPlanesRequest*,
                                 v1::ListPlanesReply* reply) override {
    return at_once(daemon_, *context, [reply](Session& session) {
      for (const auto& plane : session.planes().list()) describe(*plane, *reply->add_planes());
      return Status();
    });
  }

  grpc::ServerUnaryReactor* Retain(grpc::CallbackServerContext* context, const v1::RetainRequest* request,
                                   v1::RetainReply*) override {
    return on_pool(
        daemon_, daemon_.memory_pool(0), *context,
        [this, request](Session& session, const PendingCall&) { return daemon_.retain(session, *request); });
  }

private:
  Daemon& daemon_;
};

}  // namespace

std::unique_ptr<grpc::Service> make_planes_service(Daemon& daemon) {
  return std::make_unique<PlanesService>(daemon);
}

}  // namespace eagle::server
