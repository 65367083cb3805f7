// Files that may be a journal, and journals of any changes: read as they were written, or refused.
#include <sys/mman.h>
#include <unistd.h>

#include <iterator>
#include <string>

#include "server/keeper/journal.h"
#include "tests/fuzz/target.h"

namespace eagle::fuzz {
namespace {

using server::Journal;
using server::StateChange;
using server::StateKey;
using server::StateKind;

UniqueFd file_of(const std::string& bytes) {
  UniqueFd file(::memfd_create("journal-fuzz", MFD_CLOEXEC));
  if (!file.valid() ||
      ::pwrite(file.get(), bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    broken("no memory for the file");
  }
  return file;
}

std::string bytes_of(int file) {
  std::string bytes(static_cast<std::size_t>(::lseek(file, 0, SEEK_END)), '\0');
  if (::pread(file, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    broken("a short read");
  return bytes;
}

void check_read(const std::string& bytes) {
  const UniqueFd file = file_of(bytes);
  const auto values = Journal::read(file.get());
  if (!values.ok() && values.status().reason() != Reason::bad_message) broken(values.status().to_string());
}

// A few sessions with a few entries each, so that entries meet.
StateChange change(Bytes& bytes) {
  StateChange made;
  const std::uint8_t kind = bytes.byte();
  made.key = {1 + std::uint64_t{bytes.byte()} % 3, static_cast<StateKind>(1 + kind % 5),
              std::uint64_t{bytes.byte()} % 6};
  if (made.key.kind == StateKind::session) made.key.id = 0;
  if (made.key.kind == StateKind::strike) made.key.session = 0;
  made.gone = kind >= 0xc0;
  if (!made.gone) made.value = std::string(bytes.byte(), static_cast<char>(kind));
  return made;
}

// What the header of journal.h says, the plain way.
void apply(Journal::Values& values, const StateChange& one) {
  if (one.gone && one.key.kind == StateKind::session) {
    std::erase_if(values, [&](const auto& entry) { return entry.first.session == one.key.session; });
  } else if (one.gone) {
    values.erase(one.key);
  } else if (one.key.kind == StateKind::session || one.key.session == 0 ||
             values.count({one.key.session, StateKind::session, 0}) != 0) {
    values[one.key] = one.value;
  }
}

void check_changes(Bytes& bytes) {
  auto journal = Journal::create();
  if (!journal.ok()) broken(journal.status().to_string());
  Journal::Values expected;
  while (!bytes.empty()) {
    std::vector<StateChange> changes(1 + bytes.byte() % 3);
    for (StateChange& one : changes) one = change(bytes);
    if (!journal->apply(changes).ok()) broken("changes that are not taken");
    for (const StateChange& one : changes) apply(expected, one);
  }
  const auto reader = journal->reader();
  if (!reader.ok()) broken(reader.status().to_string());
  const auto found = Journal::read(reader->get());
  if (!found.ok() || *found != expected) broken("another journal than was written");
  // Somewhere damaged: refused, or what it was.
  std::string damaged = bytes_of(reader->get());
  if (damaged.empty()) return;
  damaged[expected.size() * 7919 % damaged.size()] ^= 0x10;
  check_read(damaged);
}

}  // namespace

std::vector<std::string> seeds() {
  std::vector<std::string> all;
  eagle::testing::MessageMutator random(3);
  for (int i = 0; i < 12; ++i) {
    std::string text(1, '\1');
    for (std::uint64_t k = 0; k < 30 + random.below(200); ++k) text += static_cast<char>(random.next());
    all.push_back(text);
  }
  // Whole files, too.
  for (int entries = 0; entries < 4; ++entries) {
    auto journal = Journal::create();
    for (std::uint64_t id = 0; id < static_cast<std::uint64_t>(entries); ++id) {
      const StateChange session{{id + 1, StateKind::session, 0}, false, "session", -1};
      if (!journal->apply({&session, 1}).ok()) broken("a seed");
    }
    all.push_back('\0' + bytes_of(journal->reader()->get()));
  }
  return all;
}

}  // namespace eagle::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace eagle;
  fuzz::Bytes bytes(data, size);
  if (bytes.byte() % 2 == 0) {
    fuzz::check_read(size == 0 ? std::string()
                               : std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  } else {
    fuzz::check_changes(bytes);
  }
  return 0;
}
