#include "client/transfers.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace eagle {
namespace {

// Of one message of a write; the daemon sends as much.
constexpr std::uint64_t chunk_bytes = 1u << 20;
// Of one call that writes: what is sent again when the connection breaks.
constexpr std::uint64_t piece_bytes = 32u << 20;
// What one call may take for so many bytes beyond the time of a short call: a slow line still moves that.
constexpr std::uint64_t bytes_per_ms = 100;

Status stopped(std::string_view operation) {
  return {Reason::cancelled, std::string(operation) + ": the caller stopped the transfer"};
}

bool goes_on(const TransferProgress& progress, std::uint64_t done, std::uint64_t all) {
  return !progress || progress(done, all);
}

void set_deadline(Connection& connection, grpc::ClientContext& context, std::uint64_t bytes) {
  context.set_deadline(std::chrono::system_clock::now() + connection.timeout +
                       milliseconds(bytes / bytes_per_ms));
}

// Whether a call that ended so may be made again; `until`: of a daemon that is being exchanged.
bool may_go_on(Connection& connection, const Status& status, Deadline until) {
  if (connection.state.closed()) return false;
  if (rpc::passes_soon(status) && Clock::now() < until) {
    std::this_thread::sleep_for(pause_between_tries);
    return true;
  }
  return status.reason() == Reason::connection_lost &&
         connection.back_again(Clock::now() + connection.timeout);
}

// Reads as far as one call comes; `at` says how far.
Status read_some(Connection& connection, std::string_view operation, const v1::PlaneSlice& slice,
                 std::span<std::byte> into, const TransferProgress& progress, std::uint64_t& at) {
  grpc::ClientContext context;
  connection.prepare(context);
  set_deadline(connection, context, into.size() - at);
  v1::ReadRequest request;
  *request.mutable_slice() = slice;
  request.set_first_byte(at);
  const std::shared_ptr<RemoteLink> link = connection.link();
  const auto reader = link->rpc().planes.Read(&context, request);
  v1::PlaneChunk chunk;
  Status wrong;
  while (reader->Read(&chunk)) {
    const std::string& data = chunk.data();
    if (data.size() > into.size() - at) {
      wrong = {Reason::bad_message, std::string(operation) + ": the daemon sent more than was asked for"};
    } else {
      std::memcpy(into.data() + at, data.data(), data.size());
      at += data.size();
      if (!goes_on(progress, at, into.size())) wrong = stopped(operation);
    }
    if (!wrong.ok()) {
      context.TryCancel();
      break;
    }
  }
  const grpc::Status finished = reader->Finish();
  if (!wrong.ok()) return wrong;
  EAGLE_RETURN_IF_ERROR(connection.outcome(operation, *link, finished, context));
  if (at == into.size()) return {};
  return {Reason::bad_message, std::string(operation) + ": the daemon sent " + std::to_string(at) + " of " +
                                   std::to_string(into.size()) + " bytes"};
}

Status write_piece(Connection& connection, std::string_view operation, const v1::PlaneSlice& slice,
                   std::span<const std::byte> from, std::uint64_t first, std::uint64_t last,
                   const TransferProgress& progress) {
  grpc::ClientContext context;
  connection.prepare(context);
  set_deadline(connection, context, last - first);
  v1::WriteReply reply;
  const std::shared_ptr<RemoteLink> link = connection.link();
  const auto writer = link->rpc().planes.Write(&context, &reply);
  v1::WriteRequest request;
  *request.mutable_slice() = slice;
  request.set_first_byte(first);
  for (std::uint64_t at = first; at < last || at == first;) {
    const std::uint64_t count = std::min(chunk_bytes, last - at);
    request.set_data(from.data() + at, count);
    if (!writer->Write(request)) break;  // the outcome says why
    request.clear_slice();
    at += count;
    if (!goes_on(progress, at, from.size())) {
      context.TryCancel();
      static_cast<void>(writer->Finish());
      return stopped(operation);
    }
    if (count == 0) break;
  }
  writer->WritesDone();
  EAGLE_RETURN_IF_ERROR(connection.outcome(operation, *link, writer->Finish(), context));
  if (reply.bytes() == last - first) return {};
  return {Reason::bad_message, std::string(operation) + ": the daemon stored " +
                                   std::to_string(reply.bytes()) + " of " + std::to_string(last - first) +
                                   " bytes"};
}

}  // namespace

Status fetch_slice(Connection& connection, std::string_view operation, const v1::PlaneSlice& slice,
                   std::span<std::byte> into, const TransferProgress& progress) {
  EAGLE_RETURN_IF_ERROR(connection.check(operation));
  if (into.empty()) return {};
  std::uint64_t at = 0;
  Deadline until = Clock::now() + connection.timeout;
  for (;;) {
    const std::uint64_t before = at;
    const Status status = read_some(connection, operation, slice, into, progress, at);
    if (at != before) until = Clock::now() + connection.timeout;
    if (status.ok() || !may_go_on(connection, status, until)) return status;
  }
}

Status send_slice(Connection& connection, std::string_view operation, const v1::PlaneSlice& slice,
                  std::span<const std::byte> from, const TransferProgress& progress) {
  EAGLE_RETURN_IF_ERROR(connection.check(operation));
  Deadline until = Clock::now() + connection.timeout;
  for (std::uint64_t at = 0; at < from.size();) {
    const std::uint64_t last = at + std::min<std::uint64_t>(piece_bytes, from.size() - at);
    const Status status = write_piece(connection, operation, slice, from, at, last, progress);
    if (status.ok()) {
      at = last;
      until = Clock::now() + connection.timeout;
    } else if (!may_go_on(connection, status, until)) {
      return status;
    }
  }
  return {};
}

Status fill_slice(Connection& connection, const v1::PlaneSlice& slice, std::uint64_t bytes,
                  std::span<const std::byte> element) {
  v1::FillRequest request;
  *request.mutable_slice() = slice;
  request.set_element(element.data(), element.size());
  v1::FillReply reply;
  constexpr std::uint64_t filled_per_ms = 100'000;  // as for making planes
  return connection.call("fill", &RemoteLink::Stubs::planes, &v1::Planes::Stub::Fill, request, reply,
                         milliseconds(bytes / filled_per_ms));
}

}  // namespace eagle
