#include "server/keeper/journal.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/crc.hpp>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "engine/base/file_bytes.h"
#include "engine/plane/memfd.h"

namespace eagle::server {
namespace {

constexpr std::uint64_t journal_magic = 0x31'4c'4e'52'4a'4c'47'45;  // "EGLJRNL1", little-endian
struct JournalHeader {
  std::uint64_t magic_number = journal_magic;
  std::uint64_t committed = 0;  // where the records end
};

struct Record {
  std::uint32_t checksum = 0;  // of all that follows
  std::uint32_t kind = 0;
  std::uint64_t value_bytes = 0;
  std::uint64_t session = 0;
  std::uint64_t id = 0;
  std::uint64_t gone = 0;
};

constexpr std::size_t checksum_bytes = sizeof(Record::checksum);

std::uint32_t checksum_of_record(std::string_view record) {
  boost::crc_32_type crc;
  crc.process_bytes(record.data() + checksum_bytes, record.size() - checksum_bytes);
  return crc.checksum();
}

std::string record_of(const StateChange& change) {
  Record header;
  header.kind = static_cast<std::uint32_t>(change.key.kind);
  header.value_bytes = change.value.size();
  header.session = change.key.session;
  header.id = change.key.id;
  header.gone = change.gone ? 1 : 0;
  std::string record(sizeof header, '\0');
  std::memcpy(record.data(), &header, sizeof header);
  record += change.value;
  header.checksum = checksum_of_record(record);
  std::memcpy(record.data(), &header, checksum_bytes);
  return record;
}

Status journal_failed(const char* call) {
  return {Reason::system, std::string("the journal: ") + call + ": " + std::strerror(errno)};
}

Status damaged_journal(const std::string& found) {
  return {Reason::bad_message, "expected a journal of this version's format, found " + found};
}

std::string bytes_of(const JournalHeader& header) {
  std::string bytes(sizeof header, '\0');
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

StateKey session_of(const StateKey& key) { return {key.session, StateKind::session, 0}; }

bool is_session(const StateKey& key) { return key.kind == StateKind::session; }

bool needs_session(const StateKey& key) {
  switch (key.kind) {
    case StateKind::session:
    case StateKind::strike:
    case StateKind::run:
    case StateKind::run_plane:
    case StateKind::run_progress:
    case StateKind::gpu_fault:
      return false;
    default:
      return true;
  }
}

// Removes what a change ends; whether the change's own entry is to be kept.
template <typename Entries>
bool keeps(Entries& entries, const StateChange& change) {
  if (change.gone && is_session(change.key)) {
    auto entry = entries.lower_bound(session_of(change.key));
    while (entry != entries.end() && entry->first.session == change.key.session) entry = entries.erase(entry);
    return false;
  }
  entries.erase(change.key);
  return !change.gone && (!needs_session(change.key) || entries.count(session_of(change.key)) != 0);
}

// The record that begins `data`, which goes on behind it.
struct Parsed {
  StateChange change;
  std::size_t bytes = 0;
};
StatusOr<Parsed> parse(std::string_view data) {
  Record header;
  if (data.size() < sizeof header) return damaged_journal("a record cut short");
  std::memcpy(&header, data.data(), sizeof header);
  if (header.value_bytes > data.size() - sizeof header) return damaged_journal("a record cut short");
  Parsed parsed;
  parsed.bytes = sizeof header + header.value_bytes;
  if (checksum_of_record(data.substr(0, parsed.bytes)) != header.checksum)
    return damaged_journal("a wrong checksum");
  if (header.kind < static_cast<std::uint32_t>(StateKind::session) ||
      header.kind > static_cast<std::uint32_t>(last_state_kind) || header.gone > 1) {
    return damaged_journal("a record of kind " + std::to_string(header.kind));
  }
  parsed.change.key = {header.session, static_cast<StateKind>(header.kind), header.id};
  parsed.change.gone = header.gone != 0;
  parsed.change.value = data.substr(sizeof header, header.value_bytes);
  return parsed;
}

// The records of such a file, mapped: a copy of them might be what a worker that died of its memory has no
// room for. The keeper never cuts the file short.
class Records {
public:
  Records(void* mapped, std::size_t bytes) : mapped_(mapped), bytes_(bytes) {}
  Records(Records&& other) noexcept
      : mapped_(std::exchange(other.mapped_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Records& operator=(Records&&) = delete;
  ~Records() {
    if (mapped_ != nullptr) ::munmap(mapped_, bytes_);
  }
  [[nodiscard]] std::string_view all() const {
    return std::string_view(static_cast<const char*>(mapped_), bytes_).substr(sizeof(JournalHeader));
  }

private:
  void* mapped_;
  std::size_t bytes_;
};
StatusOr<Records> committed(int fd) {
  struct stat file {};
  if (::fstat(fd, &file) != 0) return journal_failed("fstat");
  const auto size = static_cast<std::uint64_t>(file.st_size);
  if (size < sizeof(JournalHeader)) return damaged_journal("a file of " + std::to_string(size) + " bytes");
  EAGLE_ASSIGN_OR_RETURN(const std::string head, read_at(fd, 0, sizeof(JournalHeader)));
  JournalHeader header;
  std::memcpy(&header, head.data(), sizeof header);
  if (header.magic_number != journal_magic) return damaged_journal("another beginning");
  if (header.committed < sizeof header || header.committed > size) {
    return damaged_journal("one of " + std::to_string(header.committed) + " bytes in a file of " +
                           std::to_string(size));
  }
  void* const mapped = ::mmap(nullptr, header.committed, PROT_READ, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) return journal_failed("mmap");
  return Records(mapped, header.committed);
}

}  // namespace

StatusOr<Journal> Journal::create() {
  EAGLE_ASSIGN_OR_RETURN(UniqueFd file, plane::make_memfd("eagled-journal"));
  Journal journal(std::move(file));
  EAGLE_RETURN_IF_ERROR(journal.commit(sizeof(JournalHeader)));
  return journal;
}

StatusOr<Journal> Journal::adopt(UniqueFd file) {
  EAGLE_ASSIGN_OR_RETURN(const Records records, committed(file.get()));
  Journal journal(std::move(file));
  journal.end_ = sizeof(JournalHeader) + records.all().size();
  for (std::string_view rest = records.all(); !rest.empty();) {
    EAGLE_ASSIGN_OR_RETURN(const Parsed record, parse(rest));
    const std::uint64_t offset = journal.end_ - rest.size();
    apply_to(journal.live_, record.change, {offset, record.bytes});
    rest.remove_prefix(record.bytes);
  }
  journal.look_at_ = std::max<std::uint64_t>(small_bytes, journal.end_);
  return journal;
}

Status Journal::commit(std::uint64_t end) {
  EAGLE_RETURN_IF_ERROR(write_at(file_.get(), bytes_of({journal_magic, end}), 0).within("the journal"));
  end_ = end;
  return {};
}

Status Journal::append(const std::string& records) {
  EAGLE_RETURN_IF_ERROR(write_at(file_.get(), records, end_).within("the journal"));
  return commit(end_ + records.size());
}

void Journal::apply_to(Live& live, const StateChange& change, const Place& place) {
  if (keeps(live, change)) live[change.key] = place;
}

Status Journal::apply(std::span<const StateChange> changes) {
  std::string records;
  std::vector<Place> places;
  for (const StateChange& change : changes) {
    const std::string record = record_of(change);
    places.push_back({end_ + records.size(), record.size()});
    records += record;
  }
  EAGLE_RETURN_IF_ERROR(append(records));
  for (std::size_t i = 0; i < changes.size(); ++i) apply_to(live_, changes[i], places[i]);
  return end_ > look_at_ ? look_for_history() : Status();
}

Status Journal::look_for_history() {
  std::uint64_t live = 0;
  for (const auto& [key, place] : live_) live += place.bytes;
  if (end_ > 2 * live) EAGLE_RETURN_IF_ERROR(compact());
  look_at_ = std::max(small_bytes, 2 * live);
  return {};
}

Status Journal::compact() {
  EAGLE_ASSIGN_OR_RETURN(Journal fresh, create());
  for (const auto& [key, place] : live_) {
    EAGLE_ASSIGN_OR_RETURN(const std::string record, read_at(file_.get(), place.offset, place.bytes));
    fresh.live_[key] = {fresh.end_, place.bytes};
    EAGLE_RETURN_IF_ERROR(fresh.append(record));
  }
  *this = std::move(fresh);
  return {};
}

StatusOr<UniqueFd> Journal::reader() const {
  const std::string path = "/proc/self/fd/" + std::to_string(file_.get());
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return journal_failed("open");
  return fd;
}

std::vector<StateKey> Journal::keys() const {
  std::vector<StateKey> keys;
  for (const auto& [key, place] : live_) keys.push_back(key);
  return keys;
}

std::vector<StateKey> Journal::keys_of(const StateKey& first) const {
  std::vector<StateKey> keys;
  for (auto entry = live_.lower_bound(first); entry != live_.end(); ++entry) {
    if (entry->first.session != first.session || entry->first.kind != first.kind) break;
    keys.push_back(entry->first);
  }
  return keys;
}

StatusOr<std::string> Journal::value(const StateKey& key) const {
  const Place& place = live_.at(key);
  EAGLE_ASSIGN_OR_RETURN(const std::string record, read_at(file_.get(), place.offset, place.bytes));
  EAGLE_ASSIGN_OR_RETURN(Parsed parsed, parse(record));
  return std::move(parsed.change.value);
}

StatusOr<Journal::Values> Journal::read(int fd, const std::function<void()>& each) {
  EAGLE_ASSIGN_OR_RETURN(const Records records, committed(fd));
  Values values;
  for (std::string_view rest = records.all(); !rest.empty();) {
    EAGLE_ASSIGN_OR_RETURN(Parsed record, parse(rest));
    rest.remove_prefix(record.bytes);
    if (keeps(values, record.change)) values[record.change.key] = std::move(record.change.value);
    if (each) each();
  }
  return values;
}

}  // namespace eagle::server
