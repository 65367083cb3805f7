#include "server/rpc/transfer_call.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/graph/wire.h"
#include "server/rpc/rpc_status.h"

namespace eagle::server {
namespace {

// A stream of chunks to the client, one at a time: who does not read holds one chunk, and its transfer is
// charged for that.
class Reading final : public OneRequest<grpc::ServerBidiReactor<grpc::ByteBuffer, v1::PlaneChunk>> {
public:
  explicit Reading(const Arrival& arrival) : OneRequest(arrival) {}

private:
  google::protobuf::Message& request() override { return request_; }
  void answer() override {
    counted_ = daemon().underway().enter();
    const Status ready = prepare();
    ready.ok() ? go_on() : fail(ready);
  }

  Status prepare() {
    EAGLE_ASSIGN_OR_RETURN(slice_, slice_of(*session(), request_.slice(), false));
    at_ = request_.first_byte();
    if (at_ > slice_.packed.bytes()) {
      return {Reason::bad_value, "read: expected to start within " + std::to_string(slice_.packed.bytes()) +
                                     " bytes, found byte " + std::to_string(at_)};
    }
    EAGLE_ASSIGN_OR_RETURN(transfer_, session()->transfers().begin_read(slice_.packed.bytes() - at_));
    return {};
  }

  void go_on() {
    // What was granted may have been taken back meanwhile.
    if (slice_.plane->released()) return fail(unknown_plane(slice_.plane->id()));
    const std::uint64_t left = slice_.packed.bytes() - at_;
    if (left == 0) return fail({});
    std::string& data = *chunk_.mutable_data();
    data.resize(std::min(left, transfer_.chunk_bytes));
    const Status read =
        slice_.plane->bytes()->read(slice_.packed, at_, std::as_writable_bytes(std::span(data)));
    if (!read.ok()) return fail(read);
    at_ += data.size();
    StartWrite(&chunk_);
  }

  void OnWriteDone(bool ok) override { ok ? go_on() : fail({Reason::cancelled, "the client is gone"}); }
  void fail(const Status& status) override {
    // Who hears of the end finds nothing counted for it any more.
    chunk_ = {};
    transfer_ = {};
    Finish(rpc::to_grpc(daemon(), status, context()));
  }

  v1::ReadRequest request_;
  Underway::Token counted_;
  Transfers::Transfer transfer_;
  Slice slice_;
  std::uint64_t at_ = 0;
  v1::PlaneChunk chunk_;
};

class Writing final : public grpc::ServerReadReactor<grpc::ByteBuffer> {
public:
  Writing(const Arrival& arrival, v1::WriteReply& reply)
      : daemon_(arrival.daemon),
        counted_(daemon_.underway().enter()),
        context_(arrival.context),
        method_(arrival.method),
        reply_(reply) {
    // Who has no session, or too many transfers, hears so before the daemon takes the first message.
    const Status ready = prepare();
    ready.ok() ? StartRead(&bytes_) : end(ready);
  }

private:
  Status prepare() {
    EAGLE_ASSIGN_OR_RETURN(session_, session_of(daemon_, context_));
    EAGLE_ASSIGN_OR_RETURN(transfer_, session_->transfers().begin_write());
    return {};
  }

  void OnReadDone(bool ok) override {
    if (!ok) return end(slice_.plane || failed() ? Status() : unreadable("a WriteRequest with a slice"));
    HeldBytes none;  // `transfers` bounds these
    Status stored = read(daemon_, nullptr, method_, bytes_, incoming_, none);
    if (stored.ok()) stored = store();
    if (!stored.ok()) return end(stored);
    // Not cleared, which would keep the memory of the largest one while the client says nothing.
    incoming_ = v1::WriteRequest();
    StartRead(&bytes_);
  }

  [[nodiscard]] bool failed() const { return context_.IsCancelled(); }

  Status store() {
    if (!slice_.plane) {
      EAGLE_ASSIGN_OR_RETURN(slice_, slice_of(*session_, incoming_.slice(), true));
      at_ = incoming_.first_byte();
    } else if (incoming_.has_slice()) {
      return {Reason::bad_message, "write: expected the slice with the first message alone"};
    }
    if (slice_.plane->released()) return unknown_plane(slice_.plane->id());
    if (slice_.plane->read_only())
      return {Reason::read_only_array, "write: the plane is granted for reading only"};
    const std::uint64_t bytes = slice_.packed.bytes();
    if (at_ > bytes || incoming_.data().size() > bytes - at_) {
      return {Reason::bad_value, "write: expected at most " + std::to_string(bytes) + " bytes, found more"};
    }
    EAGLE_RETURN_IF_ERROR(
        slice_.plane->bytes()->write(slice_.packed, at_, std::as_bytes(std::span(incoming_.data()))));
    at_ += incoming_.data().size();
    reply_.set_bytes(reply_.bytes() + incoming_.data().size());
    return {};
  }

  void end(const Status& status) {
    transfer_ = {};
    Finish(rpc::to_grpc(daemon_, status, context_));
  }
  void OnDone() override { delete this; }

  Daemon& daemon_;
  const Underway::Token counted_;
  grpc::CallbackServerContext& context_;
  const Method& method_;
  std::shared_ptr<Session> session_;
  Transfers::Transfer transfer_;
  v1::WriteReply& reply_;
  grpc::ByteBuffer bytes_;
  v1::WriteRequest incoming_;
  Slice slice_;
  std::uint64_t at_ = 0;
};

}  // namespace

StatusOr<Slice> slice_of(Session& session, const v1::PlaneSlice& message, bool written) {
  Slice slice;
  EAGLE_ASSIGN_OR_RETURN(slice.plane,
                         session.planes().find({message.plane().id(), message.plane().generation()}));
  if (written && slice.plane->read_only()) {
    return Status(
        Reason::read_only_array,
        "plane '" + slice.plane->label() +
            "' was granted to this session for reading only; ask its owner to publish it with mode \"rw\"");
  }
  const std::vector<graph::Plane> only{{slice.plane->id(), false, slice.plane->size(), slice.plane->label()}};
  EAGLE_ASSIGN_OR_RETURN(slice.view, graph::read_view(message.view(), only, "slice"));
  EAGLE_ASSIGN_OR_RETURN(slice.packed, plane::Packed::of(slice.view));
  if (written) EAGLE_RETURN_IF_ERROR(plane::check_target(slice.view, slice.plane->size()));
  return slice;
}

grpc::ServerBidiReactor<grpc::ByteBuffer, v1::PlaneChunk>* read_call(const Arrival& arrival) {
  return Reading::begin(std::make_shared<Reading>(arrival));
}

grpc::ServerReadReactor<grpc::ByteBuffer>* write_call(const Arrival& arrival, v1::WriteReply& reply) {
  return new Writing(arrival, reply);  // its own, until OnDone
}

}  // namespace eagle::server
