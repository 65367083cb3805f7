#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "eagle/v1/admin.pb.h"
#include "eagle/v1/service.grpc.pb.h"
#include "server/metrics_text.h"
#include "server/recent_log.h"
#include "server/rpc/service.h"
#include "server/rpc/services.h"
#include "server/summaries.h"
#include "server/support_bundle.h"

namespace eagle::server {
namespace {

constexpr std::size_t chunk_bytes = 256u << 10;
constexpr std::uint32_t longest_drain_s = 86400;

void list(const Quarantine& quarantine, v1::ListQuarantineReply& reply) {
  const auto now = Quarantine::Clock::now();
  for (const Quarantine::Strike& strike : quarantine.list()) {
    v1::StruckGraph& message = *reply.add_graphs();
    message.set_hash(text_of(strike.hash));
    message.set_deaths(strike.deaths);
    message.set_quarantined(strike.quarantined());
    message.set_tenant(strike.tenant);
    message.set_graph(strike.graph);
    message.set_age_s(std::chrono::duration<double>(now - strike.last).count());
  }
  for (std::string& tenant : quarantine.tenants(now)) reply.add_tenants(std::move(tenant));
}

StatusOr<std::size_t> pardon(Quarantine& quarantine, const v1::PardonRequest& request) {
  const bool of_tenant = !request.tenant().empty();
  if ((request.graphs().empty() ? 0 : 1) + (of_tenant ? 1 : 0) + (request.all() ? 1 : 0) != 1) {
    return Status(Reason::bad_value,
                  "pardon: expected graphs by their hashes, a tenant or all, and one of these; found none or "
                  "several");
  }
  if (request.all()) return quarantine.pardon_all();
  if (of_tenant) return quarantine.pardon_tenant(request.tenant());
  return quarantine.pardon_graphs({request.graphs().begin(), request.graphs().end()});
}

Status check_admin(Daemon& daemon, const Session& caller) {
  if (daemon.sessions().is_admin(caller.principal())) return {};
  return {Reason::permission_denied,
          "'" + caller.principal().text() +
              "' is not one of the daemon's admins (root and whom the daemon runs as, "
              "or what `admins` of its configuration says)"};
}

// An archive on its way.
class BundleStream final
    : public OneRequest<grpc::ServerBidiReactor<grpc::ByteBuffer, v1::SupportBundleChunk>> {
public:
  BundleStream(const Arrival& arrival, const Surroundings& surroundings)
      : OneRequest(arrival), surroundings_(surroundings) {}

private:
  google::protobuf::Message& request() override { return request_; }
  void answer() override {
    counted_ = daemon().underway().enter();
    Status queued = check_admin(daemon(), *session());
    if (queued.ok()) {
      queued = daemon().build_pool().submit([this, held = shared_from_this()] {
        bytes_ = support_bundle(daemon(), surroundings_);
        next();
      });
    }
    if (!queued.ok()) fail(queued);
  }
  void fail(const Status& status) override { Finish(rpc::to_grpc(daemon(), status, context())); }
  void OnWriteDone(bool ok) override { ok ? next() : fail({Reason::cancelled, "the caller went away"}); }
  void next() {
    if (at_ >= bytes_.size()) return fail({});
    chunk_.set_data(bytes_.substr(at_, chunk_bytes));
    at_ += chunk_bytes;
    StartWrite(&chunk_);
  }

  const Surroundings& surroundings_;
  v1::SupportBundleRequest request_;
  Underway::Token counted_;
  std::string bytes_;
  std::size_t at_ = 0;
  v1::SupportBundleChunk chunk_;
};

Status set_log_level(const std::string& wanted, v1::SetLogLevelReply& reply) {
  // Unknown names are "off" for spdlog.
  const auto level = spdlog::level::from_str(wanted);
  if (level == spdlog::level::off && wanted != "off") {
    return {Reason::bad_value,
            "log level: expected trace, debug, info, warn, error or off, found '" + loggable(wanted) + "'"};
  }
  const auto name = spdlog::level::to_string_view(spdlog::get_level());
  reply.set_previous(std::string(name.data(), name.size()));
  spdlog::info("log level: {} instead of {}", wanted, reply.previous());
  spdlog::set_level(level);
  return {};
}

class AdminService final : public Service {
public:
  AdminService(Daemon& daemon, Surroundings surroundings)
      : Service(daemon, v1::Admin::service_full_name()),
        daemon_(daemon),
        surroundings_(std::move(surroundings)) {
    for_everybody();
    look();
    change();
  }

private:
  void for_everybody() {
    unary("Info", [this](PendingCall& call, const v1::InfoRequest&, v1::InfoReply& reply) {
      at_once(call, [this, &reply](const Session& caller) {
        describe(daemon_, surroundings_, caller.tenant()->name(),
                 daemon_.sessions().is_admin(caller.principal()), reply);
        return Status();
      });
    });
    unary("ListSessions",
          [this](PendingCall& call, const v1::ListSessionsRequest&, v1::ListSessionsReply& reply) {
            at_once(call, [this, &reply](const Session& caller) {
              for (const auto& session : daemon_.sessions().visible_to(caller.principal()))
                describe(daemon_, *session, *reply.add_sessions());
              return Status();
            });
          });
    unary("ListPlanes",
          [this](PendingCall& call, const v1::ListAllPlanesRequest& request, v1::ListAllPlanesReply& reply) {
            at_once(call, [this, &request, &reply](const Session& caller) {
              for (const auto& session : daemon_.sessions().visible_to(caller.principal())) {
                if (request.session() != 0 && request.session() != session->id()) continue;
                for (const auto& plane : session->planes().list())
                  describe(*session, *plane, *reply.add_planes());
              }
              return Status();
            });
          });
  }

  void look() {
    unary("Metrics", [this](PendingCall& call, const v1::MetricsRequest&, v1::MetricsReply& reply) {
      for_admins(call, [this, &reply] {
        reply.set_text(metrics_text(daemon_));
        return Status();
      });
    });
    unary("Timeline", [this](PendingCall& call, const v1::TimelineRequest&, v1::TimelineReply& reply) {
      for_admins(call, [this, &reply] {
        std::uint64_t events = 0, forgotten = 0;
        reply.set_trace_json(daemon_.timeline(0, 0, events, forgotten));
        reply.set_events(events);
        reply.set_forgotten(forgotten);
        return Status();
      });
    });
    unary("RecentLog",
          [this](PendingCall& call, const v1::RecentLogRequest& request, v1::RecentLogReply& reply) {
            for_admins(call, [this, &request, &reply] {
              const std::size_t most = request.lines() == 0 ? server::RecentLog::most_lines : request.lines();
              if (!surroundings_.recent_log) return Status();
              for (std::string& line : surroundings_.recent_log(most)) reply.add_lines(std::move(line));
              return Status();
            });
          });
    unary("ListQuarantine",
          [this](PendingCall& call, const v1::ListQuarantineRequest&, v1::ListQuarantineReply& reply) {
            for_admins(call, [this, &reply] {
              list(daemon_.quarantine(), reply);
              return Status();
            });
          });
    stream_out<BundleStream, v1::SupportBundleChunk>("SupportBundle", surroundings_);
  }

  void change() {
    unary("SetLogLevel",
          [this](PendingCall& call, const v1::SetLogLevelRequest& request, v1::SetLogLevelReply& reply) {
            for_admins(call, [&request, &reply] { return set_log_level(request.level(), reply); });
          });
    unary("Pardon", [this](PendingCall& call, const v1::PardonRequest& request, v1::PardonReply& reply) {
      for_admins(call, [this, &request, &reply]() -> Status {
        EAGLE_ASSIGN_OR_RETURN(const std::size_t forgotten, pardon(daemon_.quarantine(), request));
        reply.set_graphs(forgotten);
        spdlog::info("pardon: {} graphs{}", forgotten,
                     request.tenant().empty() ? "" : " of tenant \"" + loggable(request.tenant()) + "\"");
        return {};
      });
    });
    unary("Drain", [this](PendingCall& call, const v1::DrainRequest& request, v1::DrainReply& reply) {
      for_admins(call, [this, &request, &reply] { return drain(request, reply); });
    });
  }

  Status drain(const v1::DrainRequest& request, v1::DrainReply& reply) {
    const std::optional<std::uint32_t> within =
        request.has_timeout_s() ? std::optional(request.timeout_s()) : std::nullopt;
    if (within && *within > longest_drain_s) {
      return {Reason::bad_value, "drain: expected at most " + std::to_string(longest_drain_s) +
                                     " s for what runs, found " + std::to_string(*within)};
    }
    if (!surroundings_.end) return {Reason::graph_state, "drain: this process cannot end itself"};
    reply.set_jobs(daemon_.executor().admitted());
    spdlog::info("drain: asked for");
    surroundings_.end(within);
    return {};
  }

  void for_admins(PendingCall& call, const std::function<Status()>& work) {
    at_once(call, [&](const Session& caller) -> Status {
      EAGLE_RETURN_IF_ERROR(check_admin(daemon_, caller));
      return work();
    });
  }

  Daemon& daemon_;
  const Surroundings surroundings_;
};

}  // namespace

std::unique_ptr<grpc::Service> make_admin_service(Daemon& daemon, Surroundings surroundings) {
  return std::make_unique<AdminService>(daemon, std::move(surroundings));
}

}  // namespace eagle::server
