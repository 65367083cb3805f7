#include "eagle/client/future.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

namespace eagle::detail {

Event::Event() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Event::~Event() {
  if (fd_ >= 0) ::close(fd_);
}

void Event::set() const {
  const std::uint64_t one = 1;
  if (fd_ >= 0) static_cast<void>(::write(fd_, &one, sizeof one) == sizeof one);
}

}  // namespace eagle::detail
