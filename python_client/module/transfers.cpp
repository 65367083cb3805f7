// Values of arrays whose memory is on another machine, and arrays that sessions publish.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "arrays.h"
#include "bindings.h"
#include "eagle/client/session.h"
#include "errors.h"
#include "gil.h"
#include "interruptible.h"

namespace eagle::python {
namespace {

// Tells the caller's `progress` of a transfer, from whatever thread that runs in. What it raises ends the
// transfer, and is raised again by `finish`.
class Telling {
public:
  explicit Telling(nb::object progress) : progress_(std::move(progress)), wanted_(!progress_.is_none()) {}

  std::atomic<bool>& cancel() { return cancel_; }
  TransferProgress progress() {
    return [this](std::uint64_t done, std::uint64_t all) {
      return !cancel_.load() && (!wanted_ || tell(done, all));
    };
  }
  void finish(const Status& status) {
    if (raised_) throw nb::python_error(std::move(*raised_));
    check(status);
  }

private:
  bool tell(std::uint64_t done, std::uint64_t all) {
    const Acquired gil;
    try {
      const nb::object answer = progress_(done, all);
      return !answer.is(nb::handle(Py_False));
    } catch (nb::python_error& error) {
      raised_.emplace(std::move(error));
      return false;
    }
  }

  nb::object progress_;
  bool wanted_;
  std::atomic<bool> cancel_ = false;
  std::optional<nb::python_error> raised_;
};

// What `call` gives, made without the GIL.
template <typename Call>
auto outside(const Call& call) {
  auto found = [&] {
    const Released released;
    return call();
  }();
  return take(std::move(found));
}

// The bytes of a row-major array of this process.
std::span<std::byte> bytes_of(nb::handle array, const std::string& where) {
  auto* const data = static_cast<std::byte*>(const_cast<void*>(address_of(array, where)));
  return {data, nb::cast<std::size_t>(array.attr("nbytes"))};
}

void fetch(const Session& session, nb::handle array, nb::handle into, nb::object progress) {
  const ArrayView from = view_of(array, "fetch: array");
  const std::span<std::byte> packed = bytes_of(into, "fetch: into");
  Telling telling(std::move(progress));
  const TransferProgress tell = telling.progress();
  telling.finish(interruptible(telling.cancel(), [&] { return session.fetch_packed(from, packed, tell); }));
}

void send(const Session& session, nb::handle array, nb::handle values, nb::object progress) {
  const ArrayView to = view_of(array, "send: array");
  const std::span<std::byte> packed = bytes_of(values, "send: values");
  Telling telling(std::move(progress));
  const TransferProgress tell = telling.progress();
  telling.finish(interruptible(telling.cancel(), [&] { return session.send_packed(to, packed, tell); }));
}

void fill(const Session& session, nb::handle array, const nb::bytes& element) {
  const ArrayView to = view_of(array, "fill: array");
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(element.c_str()), element.size());
  Status status;
  {
    const Released released;
    status = session.fill(to, bytes);
  }
  check(status);
}

// (array, owner, moved); the array is None where it is the one that was given.
nb::tuple publish(const Session& session, nb::handle array, const std::string& name, bool writable,
                  std::vector<std::string> to, nb::object keep) {
  const ArrayView view = view_of(array, "publish: array");
  const PublishOptions options{writable, std::move(to)};
  PublishedArray found = outside([&] { return session.publish(view, name, options); });
  const bool moved = found.moved;
  const std::string owner = found.owner;
  const nb::object shown = moved ? published_array(std::move(found), std::move(keep)) : nb::none();
  return nb::make_tuple(shown, owner, moved);
}

nb::object open(const Session& session, const std::string& name, const std::string& owner, nb::object keep) {
  return published_array(outside([&] { return session.open(name, owner); }), std::move(keep));
}

void withdraw(const Session& session, const std::string& name, std::vector<std::string> from, bool seal_off) {
  const WithdrawOptions options{std::move(from), seal_off};
  Status status;
  {
    const Released released;
    status = session.withdraw(name, options);
  }
  check(status);
}

// (id, label, bytes, transport, why, read_only, huge_bytes, device, opened_by).
nb::tuple row_of(const SessionPlane& plane) {
  return nb::make_tuple(plane.id, plane.label, plane.bytes, plane.transport, plane.why, plane.read_only,
                        plane.huge_bytes, plane.device, plane.opened_by);
}

std::vector<nb::tuple> planes(const Session& session) {
  std::vector<nb::tuple> rows;
  for (const SessionPlane& plane : outside([&] { return session.planes(); })) rows.push_back(row_of(plane));
  return rows;
}

nb::tuple plane_of(const Session& session, nb::handle array) {
  const void* const address = address_of(array, "array");
  return row_of(outside([&] { return session.plane_of(address); }));
}

}  // namespace

void bind_transfers(nb::module_& m) {
  m.def("fetch", fetch, nb::arg("session"), nb::arg("array"), nb::arg("into"), nb::arg("progress").none());
  m.def("send", send, nb::arg("session"), nb::arg("array"), nb::arg("values"), nb::arg("progress").none());
  m.def("fill", fill);
  m.def("publish", publish);
  m.def("open_published", open);
  m.def("withdraw", withdraw);
  m.def("planes", planes);
  m.def("plane_of", plane_of);
}

}  // namespace eagle::python
