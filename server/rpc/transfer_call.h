// The bytes of planes as streams: Planes.Read and Planes.Write.
// For the .cpp files of this folder only: it brings gRPC's headers.
#pragma once

#include "eagle/v1/service.grpc.pb.h"
#include "engine/plane/packed.h"
#include "server/daemon.h"
#include "server/rpc/call.h"

namespace eagle::server {

// A slice of a plane, checked.
struct Slice {
  std::shared_ptr<Plane> plane;
  plane::View view;
  plane::Packed packed;
};
// UNKNOWN_PLANE, VIEW_OUTSIDE_PLANE, BAD_VALUE; READ_ONLY_ARRAY where it is to be written and must not. One
// that is to be written has no more bytes than its plane; one that is read may, with strides of 0.
StatusOr<Slice> slice_of(Session& session, const v1::PlaneSlice& message, bool written);

grpc::ServerBidiReactor<grpc::ByteBuffer, v1::PlaneChunk>* read_call(const Arrival& arrival);
grpc::ServerReadReactor<grpc::ByteBuffer>* write_call(const Arrival& arrival, v1::WriteReply& reply);

}  // namespace eagle::server
