// Session, and running a model in one.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "arrays.h"
#include "bindings.h"
#include "eagle/client/graph.h"
#include "eagle/client/session.h"
#include "errors.h"
#include "gil.h"
#include "interruptible.h"
#include "nodes.h"

namespace eagle::python {
namespace {

using Milliseconds = std::chrono::milliseconds;

Milliseconds milliseconds(double seconds, const char* where) {
  if (!(seconds > 0) || seconds > 1e9) {
    throw StatusError({Reason::bad_value, std::string(where) + ": a timeout of " + std::to_string(seconds) +
                                              " s; give a number of seconds above 0"});
  }
  return Milliseconds(static_cast<std::int64_t>(std::ceil(seconds * 1000)));
}

// `tls`: (ca, certificate, key), or None. `lease`: seconds; 0: none, or over TCP as the daemon likes.
Session connect_to(const std::string& endpoint, double timeout,
                   const std::optional<std::tuple<std::string, std::string, std::string>>& tls,
                   const std::string& token, double lease, const std::string& resume,
                   const std::string& traceparent, bool huge_pages) {
  ConnectOptions options;
  options.timeout = milliseconds(timeout, "connect");
  if (tls) options.tls = TlsOptions{std::get<0>(*tls), std::get<1>(*tls), std::get<2>(*tls), {}};
  options.token = token;
  if (lease > 0) options.lease = milliseconds(lease, "connect: lease");
  options.resume = resume;
  options.traceparent = traceparent;
  options.huge_pages = huge_pages;
  const Released released;
  return take(connect(endpoint, options));
}

Session open_local(int threads) {
  const Released released;
  return take(local({threads}));
}

SessionInfo info_of(const Session& session) {
  const Released released;
  return take(session.info());
}

void close(const Session& session) {
  Status closed;
  {
    const Released released;
    closed = session.close();
  }
  RunningCall::stop_calls_of(session);
  check(closed);
}

bool owns(const Session& session, nb::handle array) { return session.owns(address_of(array, "owns: array")); }

void accept(const Session& session, nb::handle array) {
  const ArrayView view = view_of(array, "accept: array");
  Status accepted;
  {
    const Released released;
    accepted = session.accept(view);
  }
  check(accepted);
}

// What a user would like to hear of a plan that cannot run.
void check_plan(const Session& session, const Node& node) {
  const auto& plan = std::get<BoundPlan>(node.kind);
  Status status;
  {
    const Released released;
    status = eagle::check_plan(session, plan);
  }
  if (status.ok()) return;
  // A plan has one kernel and no place yet: what a graph calls "node 0 'f'" or "node 'f'" is that.
  std::string_view message = status.message();
  bool known = false;
  for (const std::string_view prefix : {"node 0 ", "node "}) {
    known = known || message.starts_with(prefix);
    if (message.starts_with(prefix)) message.remove_prefix(prefix.size());
  }
  throw StatusError({status.reason(), (known ? "bind: kernel " : "bind: ") + std::string(message)});
}

}  // namespace

void bind_sessions(nb::module_& m) {
  nb::class_<run::HostIdentity>(m, "HostIdentity")
      .def_ro("pid", &run::HostIdentity::pid)
      .def_ro("host_name", &run::HostIdentity::host_name);

  nb::class_<TenantUse>(m, "TenantUse")
      .def_ro("name", &TenantUse::name)
      .def_ro("weight", &TenantUse::weight)
      .def_ro("priority", &TenantUse::priority)
      .def_ro("sessions", &TenantUse::sessions)
      .def_ro("planes", &TenantUse::planes)
      .def_ro("plane_bytes", &TenantUse::plane_bytes)
      .def_ro("graphs", &TenantUse::graphs)
      .def_ro("jobs", &TenantUse::jobs)
      .def_ro("jobs_ended", &TenantUse::jobs_ended)
      .def_ro("refused", &TenantUse::refused)
      .def_ro("device_s", &TenantUse::device_s)
      .def_ro("compile_s", &TenantUse::compile_s)
      .def_ro("queue_wait_s", &TenantUse::queue_wait_s)
      .def_ro("longest_queue_wait_s", &TenantUse::longest_queue_wait_s);

  nb::class_<SessionInfo>(m, "SessionInfo")
      .def_ro("endpoint", &SessionInfo::endpoint)
      .def_ro("transport", &SessionInfo::transport)
      .def_ro("version", &SessionInfo::version)
      .def_ro("host", &SessionInfo::host)
      .def_ro("threads", &SessionInfo::threads)
      .def_ro("cpu", &SessionInfo::cpu)
      .def_ro("uptime_s", &SessionInfo::uptime_s)
      .def_ro("sessions", &SessionInfo::sessions)
      .def_ro("planes", &SessionInfo::planes)
      .def_ro("plane_bytes", &SessionInfo::plane_bytes)
      .def_ro("plane_budget_bytes", &SessionInfo::plane_budget_bytes)
      .def_ro("graphs", &SessionInfo::graphs)
      .def_ro("launches", &SessionInfo::launches)
      .def_ro("kernels_cached", &SessionInfo::kernels_cached)
      .def_ro("tenant", &SessionInfo::tenant)
      .def_ro("tenants", &SessionInfo::tenants);

  nb::class_<Session>(m, "Session")
      .def(
          "allocate",
          [](const Session& session, const Shape& shape, std::string_view dtype, std::string_view label,
             bool zeroed, nb::object keep, std::string_view device) {
            return allocate_array(session, shape, dtype, label, zeroed ? Contents::zeros : Contents::any,
                                  std::move(keep), device);
          },
          nb::arg("shape"), nb::arg("dtype"), nb::arg("label"), nb::arg("zeroed"), nb::arg("keep"),
          nb::arg("device"))
      .def(
          "import_on_device",
          [](const Session& session, std::uint64_t pointer, Shape shape, std::vector<std::int64_t> strides,
             std::string typestr, std::uint32_t item_bytes, bool read_only, nb::handle owner,
             std::string_view label, nb::object keep) {
            return imported_array(
                session,
                {pointer, std::move(shape), std::move(strides), std::move(typestr), item_bytes, read_only},
                owner, label, std::move(keep));
          },
          nb::arg("pointer"), nb::arg("shape"), nb::arg("strides"), nb::arg("typestr"), nb::arg("item_bytes"),
          nb::arg("read_only"), nb::arg("owner"), nb::arg("label"), nb::arg("keep"))
      .def("device_of",
           [](const Session& session, nb::handle array) {
             return session.device_of(address_of(array, "device_of: array"));
           })
      .def("owns", owns, nb::arg("array").none())
      .def("accept", accept, nb::arg("array").none())
      .def("info", info_of)
      .def("resume_token", &Session::resume_token)
      .def("close", close)
      .def("check_plan", check_plan)
      .def_prop_ro("name", &Session::name)
      .def_prop_ro("closed", &Session::closed)
      .def_prop_ro("remote", &Session::remote)
      .def_prop_ro("copies", &Session::copies);
  m.def("connect", connect_to, nb::arg("endpoint"), nb::arg("timeout"), nb::arg("tls").none(),
        nb::arg("token"), nb::arg("lease"), nb::arg("resume"), nb::arg("traceparent"), nb::arg("huge_pages"));
  m.def("local", open_local);
}

}  // namespace eagle::python
