#include "client/record/recorder.h"

#include <errno.h>

#include <algorithm>
#include <cstdio>

#include "client/record/contents.h"
#include "eagle/v1/record.pb.h"
#include "eagle/v1/service.pb.h"
#include "engine/base/clock.h"
#include "engine/base/process.h"
#include "engine/plane/packed.h"

namespace eagle::record {
namespace {

std::uint64_t size_of_piece(std::uint64_t bytes, std::size_t piece) {
  return std::min(piece_bytes, bytes - piece * piece_bytes);
}

}  // namespace

StatusOr<std::shared_ptr<Recorder>> Recorder::create(const RecordingOptions& options, const SessionInfo& info,
                                                     bool copies, Fetch fetch, bool beside) {
  EAGLE_ASSIGN_OR_RETURN(Writer writer, beside ? Writer::create_beside(options.file, options.most_bytes)
                                               : Writer::create(options.file, options.most_bytes));
  std::shared_ptr<Recorder> recorder(
      new Recorder(std::move(writer), options.contents, copies, std::move(fetch)));
  v1::RecordEntry entry;
  v1::RecordHeader& header = *entry.mutable_header();
  header.set_version(format_version);
  header.set_client(program_invocation_short_name);
  header.set_client_version(EAGLE_VERSION);
  header.set_endpoint(info.endpoint);
  header.set_transport(info.transport);
  header.set_host_version(info.version);
  header.set_cpu(info.cpu);
  header.set_threads(info.threads);
  header.set_contents(options.contents);
  header.set_in_process(info.transport == "in process");
  const std::scoped_lock lock(recorder->mutex_);
  recorder->write(entry);
  if (!recorder->writes())
    return Status(Reason::bad_value, "recording: '" + options.file + "' cannot be written");
  return recorder;
}

Recorder::Recorder(Writer writer, bool contents, bool copies, Fetch fetch)
    : pid_(this_process()),
      contents_(contents),
      copies_(copies),
      fetch_(std::move(fetch)),
      writer_(std::move(writer)) {}

Recorder::~Recorder() { close(); }

bool Recorder::writes() const { return writer_.has_value() && this_process() == pid_; }

void Recorder::write(v1::RecordEntry& entry) {
  if (!writes()) return;
  entry.set_at_s(seconds_since(begun_));
  const Status done = writer_->append(entry);
  if (!done.ok()) stop(done);
}

void Recorder::stop(const Status& why) {
  std::fprintf(stderr, "eagle: %s; nothing more is recorded\n", why.message().c_str());
  v1::RecordEntry entry;
  entry.set_at_s(seconds_since(begun_));
  entry.mutable_end()->set_why(why.message());
  static_cast<void>(writer_->append(entry));  // where there is room for so much
  writer_.reset();
}

Recorder::Known& Recorder::number(std::uint64_t& number, std::uint64_t bytes, std::byte* data,
                                  bool is_private, const std::string& device) {
  if (number == 0) {
    number = planes_.size() + 1;
    Known& plane = planes_.emplace_back();
    plane.bytes = bytes;
    plane.on_gpu = !device.empty();
    if (contents_) {
      for (std::size_t i = 0; i < pieces_in(bytes, piece_bytes); ++i)
        plane.pieces.emplace_back(digest_of_zeros(size_of_piece(bytes, i)));
    }
    v1::RecordEntry entry;
    entry.mutable_plane()->set_plane(number);
    entry.mutable_plane()->set_bytes(bytes);
    entry.mutable_plane()->set_private_memory(is_private);
    entry.mutable_plane()->set_device(device);
    write(entry);
  }
  Known& plane = planes_[number - 1];
  if (data != nullptr) plane.data = data;
  return plane;
}

void Recorder::holds(const PlaneAddress& where, std::uint64_t bytes, std::byte* data, bool fresh) {
  if (this_process() != pid_) return;
  const std::scoped_lock lock(mutex_);
  if (!writes()) return;
  std::uint64_t& known = shared_[{where.plane.id, where.plane.generation}];
  Known& plane = number(known, where.plane_bytes, copies_ ? nullptr : data - where.offset, false,
                        where.keep_alive->device());
  bytes = std::min(bytes, where.plane_bytes - std::min(where.offset, where.plane_bytes));
  if (fresh) {
    v1::RecordEntry entry;
    entry.mutable_fresh()->set_plane(known);
    entry.mutable_fresh()->set_offset(where.offset);
    entry.mutable_fresh()->set_bytes(bytes);
    write(entry);
  }
  if (bytes == 0) return;
  const std::size_t last = static_cast<std::size_t>((where.offset + bytes - 1) / piece_bytes);
  for (auto piece = static_cast<std::size_t>(where.offset / piece_bytes);
       piece <= last && piece < plane.pieces.size(); ++piece)
    plane.pieces[piece].reset();
}

void Recorder::stored(const PlaneAddress& where, const ArrayView& array, std::span<const std::byte> packed) {
  store(where, array, piece_bytes, [&](std::uint64_t at, std::size_t bytes) {
    return packed.subspan(static_cast<std::size_t>(at), bytes);
  });
}

void Recorder::filled(const PlaneAddress& where, const ArrayView& array, std::span<const std::byte> element) {
  if (element.empty() || element.size() > piece_bytes) return;
  std::vector<std::byte> piece;
  const std::size_t whole = piece_bytes / element.size();
  store(where, array, whole * element.size(), [&](std::uint64_t, std::size_t bytes) {
    while (piece.size() < bytes) piece.insert(piece.end(), element.begin(), element.end());
    return std::span<const std::byte>(piece).first(bytes);
  });
}

// What lies in the pieces [at, at + bytes) of the array, packed, is asked for one after the other.
void Recorder::store(const PlaneAddress& where, const ArrayView& array, std::uint64_t piece,
                     const std::function<std::span<const std::byte>(std::uint64_t, std::size_t)>& content) {
  if (this_process() != pid_ || !contents_ || !copies_) return;
  if (array.strides != plane::row_major_strides(array.shape, array.item_bytes)) return;
  std::uint64_t all = array.item_bytes;
  for (const std::int64_t extent : array.shape) all *= static_cast<std::uint64_t>(extent);
  const std::scoped_lock lock(mutex_);
  std::uint64_t& known = shared_[{where.plane.id, where.plane.generation}];
  static_cast<void>(number(known, where.plane_bytes, nullptr, false));
  for (std::uint64_t at = 0; at < all && writes(); at += piece) {
    const auto part = content(at, static_cast<std::size_t>(std::min(piece, all - at)));
    v1::RecordEntry entry;
    entry.mutable_bytes()->set_plane(known);
    entry.mutable_bytes()->set_offset(where.offset + at);
    entry.mutable_bytes()->set_data(part.data(), part.size());
    write(entry);
  }
}

Recorder::Parts Recorder::parts_of(const Declarations& declarations,
                                   std::span<const run::PlaneMemory> private_planes) {
  Parts parts;
  if (this_process() != pid_) return Parts(static_cast<std::size_t>(declarations.size()));
  const std::scoped_lock lock(mutex_);
  for (int i = 0; i < declarations.size(); ++i) {
    const v1::PlaneDeclaration& declaration = declarations.Get(i);
    Part& part = parts.emplace_back();
    if (declaration.has_scratch() || !writes()) continue;
    if (declaration.has_plane()) {
      part.number = shared_[{declaration.plane().id(), declaration.plane().generation()}];
      Known& plane = number(part.number, declaration.bytes(), nullptr, false);
      shared_[{declaration.plane().id(), declaration.plane().generation()}] = part.number;
      part.data = plane.data;
      part.bytes = plane.bytes;
      part.on_gpu = plane.on_gpu;
    } else {
      const run::PlaneMemory memory = static_cast<std::size_t>(i) < private_planes.size()
                                          ? private_planes[static_cast<std::size_t>(i)]
                                          : run::PlaneMemory{};
      // What cannot be told apart by its place is told apart by being new.
      std::uint64_t fresh = 0;
      std::uint64_t& known = memory.data == nullptr ? fresh : private_[{memory.data, declaration.bytes()}];
      Known& plane = number(known, declaration.bytes(), memory.data, true);
      part = {known, plane.data, plane.bytes, false};
    }
  }
  return parts;
}

std::uint64_t Recorder::next_graph() {
  const std::scoped_lock lock(mutex_);
  return ++last_graph_;
}

StatusOr<std::span<const std::byte>> Recorder::piece_of(const Known& plane, std::size_t piece,
                                                        std::vector<std::byte>& room) const {
  const auto bytes = static_cast<std::size_t>(size_of_piece(plane.bytes, piece));
  std::byte* const at = plane.data + piece * piece_bytes;
  if (!plane.on_gpu) return std::span<const std::byte>(at, bytes);
  room.resize(bytes);
  EAGLE_RETURN_IF_ERROR(
      fetch_({at, DType::boolean, 1, {static_cast<std::int64_t>(bytes)}, {1}, false, nullptr}, room));
  return std::span<const std::byte>(room);
}

// A GPU that does not tell what is there is lost, which the request will say.
void Recorder::write_contents(std::uint64_t number) {
  Known& plane = planes_[number - 1];
  if (!contents_ || plane.data == nullptr) return;
  std::vector<std::byte> room;
  for (std::size_t i = 0; i < plane.pieces.size() && writes(); ++i) {
    const auto piece = piece_of(plane, i, room);
    if (!piece.ok()) return plane.pieces[i].reset();
    const Digest now = digest_of(*piece);
    if (plane.pieces[i] == now) continue;
    plane.pieces[i] = now;
    v1::RecordEntry entry;
    entry.mutable_bytes()->set_plane(number);
    entry.mutable_bytes()->set_offset(i * piece_bytes);
    entry.mutable_bytes()->set_data(piece->data(), piece->size());
    write(entry);
  }
}

std::optional<Digest> Recorder::write_digests(std::uint64_t number) {
  Known& plane = planes_[number - 1];
  std::vector<Digest> digests;
  std::vector<std::byte> room;
  for (std::size_t i = 0; i < plane.pieces.size(); ++i) {
    const auto piece = piece_of(plane, i, room);
    if (!piece.ok()) {
      plane.pieces[i].reset();
      return std::nullopt;
    }
    digests.push_back(digest_of(*piece));
    plane.pieces[i] = digests.back();
  }
  return digest_of(digests);
}

std::uint64_t Recorder::begin(const Parts& parts, bool describes, std::uint64_t graph,
                              const std::function<void(v1::RecordRequest&)>& fill) {
  if (this_process() != pid_) return 0;
  const std::scoped_lock lock(mutex_);
  if (!writes()) return 0;
  v1::RecordEntry entry;
  fill(*entry.mutable_request());
  // What builds and rebinds look at is no value.
  const bool computes = entry.request().has_launch() || entry.request().has_run();
  for (const Part& part : parts) {
    if (computes && part.number != 0) write_contents(part.number);
    if (describes) entry.mutable_request()->add_planes(part.number);
  }
  entry.mutable_request()->set_number(++last_request_);
  entry.mutable_request()->set_graph(graph);
  write(entry);
  return last_request_;
}

void Recorder::host_call(std::uint64_t request, std::uint32_t call, const Status& status, bool stop,
                         const Parts& parts, const std::vector<plane::View>& writes, bool on_gpu) {
  if (request == 0 || this_process() != pid_) return;
  v1::RecordEntry entry;
  v1::RecordHostCall& made = *entry.mutable_host_call();
  made.set_request(request);
  made.set_call(call);
  if (!status.ok()) made.set_reason(std::string(info(status.reason()).wire_name));
  made.set_message(status.message());
  made.set_stop(stop);
  if (contents_ && !copies_) {
    for (const plane::View& view : writes) {
      std::string& packed = *made.add_written();
      if (view.plane >= parts.size() || parts[view.plane].data == nullptr) continue;
      if (!plane::check(view, parts[view.plane].bytes).ok()) continue;
      const auto form = plane::Packed::of(view);
      if (!form.ok() || form->bytes() > most_frame_bytes / 2) continue;
      packed.resize(static_cast<std::size_t>(form->bytes()));
      const auto room = std::as_writable_bytes(std::span(packed));
      std::byte* const data = parts[view.plane].data;
      if (!on_gpu || !parts[view.plane].on_gpu) {
        form->read(data, 0, room);
      } else if (!fetch_({data + view.offset, view.dtype, view.item_bytes, view.shape, view.strides, false,
                          nullptr},
                         room)
                      .ok()) {
        packed.clear();
      }
    }
  }
  const std::scoped_lock lock(mutex_);
  write(entry);
}

void Recorder::end(std::uint64_t request, const Status& status, std::chrono::steady_clock::time_point begun,
                   const Parts& parts, bool whole, const std::function<void(v1::RecordOutcome&)>& fill) {
  if (request == 0 || this_process() != pid_) return;
  const double wall_s = seconds_since(begun);
  const std::scoped_lock lock(mutex_);
  if (!writes()) return;
  v1::RecordEntry entry;
  v1::RecordOutcome& outcome = *entry.mutable_outcome();
  outcome.set_request(request);
  if (!status.ok()) outcome.set_reason(std::string(info(status.reason()).wire_name));
  outcome.set_message(status.message());
  outcome.set_wall_s(wall_s);
  fill(outcome);
  for (const Part& part : parts) {
    if (!contents_ || part.number == 0 || planes_[part.number - 1].data == nullptr) continue;
    if (!whole) {
      for (auto& piece : planes_[part.number - 1].pieces) piece.reset();
      continue;
    }
    const std::optional<Digest> digest = write_digests(part.number);
    if (!digest) continue;
    v1::RecordDigest& message = *outcome.add_digests();
    message.set_plane(part.number);
    message.set_sha256(digest->data(), digest->size());
  }
  write(entry);
}

void Recorder::forget(const Parts& parts) {
  const std::scoped_lock lock(mutex_);
  for (const Part& part : parts) {
    if (part.number == 0) continue;
    for (auto& piece : planes_[part.number - 1].pieces) piece.reset();
  }
}

void Recorder::forget_all() {
  const std::scoped_lock lock(mutex_);
  for (Known& plane : planes_) {
    for (auto& piece : plane.pieces) piece.reset();
  }
}

void Recorder::release(std::uint64_t graph) {
  if (this_process() != pid_) return;
  const std::scoped_lock lock(mutex_);
  v1::RecordEntry entry;
  entry.mutable_release()->set_graph(graph);
  write(entry);
}

void Recorder::accept(const v1::AcceptPlanesRequest& request) {
  if (this_process() != pid_) return;
  const auto begun = std::chrono::steady_clock::now();
  const std::uint64_t number = begin({}, false, 0, [&](v1::RecordRequest& made) {
    made.mutable_accept();
    for (const auto& part : request.parts()) {
      const auto known = shared_.find({part.plane().id(), part.plane().generation()});
      if (known == shared_.end()) continue;
      auto& kept = *made.mutable_accept()->add_parts();
      kept.set_plane(known->second);
      *kept.mutable_view() = part.view();
    }
  });
  end(number, {}, begun, {}, true, [](v1::RecordOutcome&) {});
}

void Recorder::close() {
  if (this_process() != pid_) return;
  const std::scoped_lock lock(mutex_);
  if (!writes()) return;
  v1::RecordEntry entry;
  entry.mutable_end();
  write(entry);
  writer_.reset();
}

}  // namespace eagle::record
