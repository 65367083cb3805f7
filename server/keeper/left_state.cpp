#include "server/keeper/left_state.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <boost/crc.hpp>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "eagle/v1/state.pb.h"
#include "engine/base/file_bytes.h"
#include "engine/plane/memfd.h"
#include "server/keeper/journal.h"
#include "server/ledger.h"

namespace eagle::server {
namespace {

constexpr std::uint64_t magic = 0x31'50'45'4b'4c'47'41'45;  // "EAGLKEP1", little-endian
struct Header {
  std::uint64_t magic_number = magic;
  std::uint32_t version = 0;
  std::uint32_t checksum = 0;  // of the message
  std::uint64_t bytes = 0;     // of the message
};

std::uint32_t checksum_of(std::string_view message) {
  boost::crc_32_type crc;
  crc.process_bytes(message.data(), message.size());
  return crc.checksum();
}

Status damaged_state(const std::string& found) {
  return {Reason::bad_message, "expected the state of a keeper, found " + found};
}

}  // namespace

std::vector<int> LeftState::descriptors() const {
  std::vector<int> all = {journal, ledger};
  if (owner >= 0) all.push_back(owner);
  for (const auto& [endpoint, fd] : listening) all.push_back(fd);
  for (const auto& [key, fd] : held) all.push_back(fd);
  for (const auto& [id, fd] : bytes) all.push_back(fd);
  return all;
}

StatusOr<UniqueFd> write_left_state(const LeftState& state, std::uint32_t version) {
  v1::KeeperState message;
  message.set_epoch(state.epoch);
  for (const auto& [endpoint, fd] : state.listening) {
    v1::KeeperState::Socket& socket = *message.add_listening();
    socket.set_endpoint(endpoint);
    socket.set_fd(fd);
  }
  message.set_socket_device(state.socket_device);
  message.set_socket_inode(state.socket_inode);
  message.set_owner(state.owner);
  message.set_journal(state.journal);
  message.set_ledger(state.ledger);
  for (const auto& [key, fd] : state.held) {
    v1::KeeperState::Held& held = *message.add_held();
    held.set_session(key.session);
    held.set_kind(static_cast<std::uint32_t>(key.kind));
    held.set_id(key.id);
    held.set_fd(fd);
  }
  for (const auto& [id, fd] : state.bytes) {
    v1::KeeperState::Bytes& bytes = *message.add_bytes();
    bytes.set_bytes_id(id);
    bytes.set_fd(fd);
  }
  message.set_program(state.program);
  message.set_again(state.again);
  const std::string text = message.SerializeAsString();
  Header header;
  header.version = version;
  header.checksum = checksum_of(text);
  header.bytes = text.size();
  std::string bytes(sizeof header, '\0');
  std::memcpy(bytes.data(), &header, sizeof header);
  EAGLE_ASSIGN_OR_RETURN(UniqueFd file, plane::make_memfd("eagled-state"));
  EAGLE_RETURN_IF_ERROR(write_at(file.get(), bytes + text, 0).within("the keeper's state"));
  return file;
}

StatusOr<LeftState> read_left_state(int fd) {
  struct stat file {};
  if (::fstat(fd, &file) != 0) return Status(Reason::system, std::string("fstat: ") + std::strerror(errno));
  Header header;
  const auto size = static_cast<std::uint64_t>(file.st_size);
  if (size < sizeof header) return damaged_state("a file of " + std::to_string(size) + " bytes");
  EAGLE_ASSIGN_OR_RETURN(const std::string head, read_at(fd, 0, sizeof header));
  std::memcpy(&header, head.data(), sizeof header);
  if (header.magic_number != magic) return damaged_state("another beginning");
  if (header.version < oldest_left_state_version || header.version > left_state_version) {
    return Status(Reason::bad_message, "expected the state of a keeper in format " +
                                           std::to_string(oldest_left_state_version) + " to " +
                                           std::to_string(left_state_version) + ", found format " +
                                           std::to_string(header.version) +
                                           "; exchange eagled for a version next to the one that runs, or "
                                           "restart it, which loses what clients hold");
  }
  if (header.bytes != size - sizeof header) return damaged_state("one that was cut short");
  EAGLE_ASSIGN_OR_RETURN(const std::string text, read_at(fd, sizeof header, header.bytes));
  v1::KeeperState message;
  if (checksum_of(text) != header.checksum || !message.ParseFromString(text)) {
    return damaged_state("a wrong checksum");
  }
  LeftState state;
  state.epoch = message.epoch();
  for (const auto& socket : message.listening()) state.listening.emplace_back(socket.endpoint(), socket.fd());
  state.socket_device = message.socket_device();
  state.socket_inode = message.socket_inode();
  state.owner = message.owner();
  state.journal = message.journal();
  state.ledger = message.ledger();
  for (const auto& held : message.held()) {
    state.held[{held.session(), static_cast<StateKind>(held.kind()), held.id()}] = held.fd();
  }
  for (const auto& bytes : message.bytes()) state.bytes[bytes.bytes_id()] = bytes.fd();
  state.program = message.program();
  state.again = message.again();
  return state;
}

Status check_left_state(int state, int journal, int ledger) {
  EAGLE_RETURN_IF_ERROR(read_left_state(state).status());
  EAGLE_RETURN_IF_ERROR(Journal::read(journal).status());
  UniqueFd copy(::fcntl(ledger, F_DUPFD_CLOEXEC, 0));
  return Ledger::adopt(std::move(copy)).status();
}

StatusOr<Inherited> take_left_state(UniqueFd state) {
  EAGLE_ASSIGN_OR_RETURN(const LeftState left, read_left_state(state.get()));
  for (const int fd : left.descriptors()) EAGLE_RETURN_IF_ERROR(set_inherited(fd, false));
  Inherited taken;
  taken.epoch = left.epoch;
  for (const auto& [endpoint, fd] : left.listening) taken.listening.emplace_back(endpoint, UniqueFd(fd));
  taken.socket_device = left.socket_device;
  taken.socket_inode = left.socket_inode;
  if (left.owner >= 0) taken.owner.reset(left.owner);
  taken.journal.reset(left.journal);
  taken.ledger.reset(left.ledger);
  for (const auto& [key, fd] : left.held) taken.held.emplace(key, UniqueFd(fd));
  for (const auto& [id, fd] : left.bytes) taken.bytes.emplace(id, UniqueFd(fd));
  taken.program = left.program;
  taken.again = left.again;
  return taken;
}

Status set_inherited(int fd, bool inherited) {
  if (::fcntl(fd, F_SETFD, inherited ? 0 : FD_CLOEXEC) == 0) return {};
  return {Reason::system, "descriptor " + std::to_string(fd) + ": fcntl: " + std::strerror(errno)};
}

}  // namespace eagle::server
