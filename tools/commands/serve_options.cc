#include "tools/commands/serve_options.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "engine/base/status.h"
#include "server/address.h"
#include "server/handlers/model_repository.h"
#include "server/log/log_line.h"
#include "tools/command_line/config_file.h"

namespace hippodrome {

namespace {

// A server has a tree of prefixes, whatever a generator alone has: enough for the beginnings that
// its clients' prompts have in common, and at 37 MiB each for a model of 2.7B parameters not much.
constexpr int64_t kPrefixSlots = 16;

std::string ShareText(double share) {
  std::ostringstream text;
  text << share;
  return text.str();
}

}  // namespace

const CommandSpec kServeSpec = {
    .name = "serve",
    .summary = "Serves models over HTTP and gRPC until SIGTERM or SIGINT.",
    .usage = {"--model [NAME=]DIR [OPTION]...", "--admin HOST:PORT [OPTION]...",
              "--config FILE [OPTION]..."},
    .description =
        "A signal ends it: /ready and the gRPC health service say that it is stopping, while "
        "requests are still taken for the drain delay; then it takes no more, gives running "
        "streams their grace period, and stops. In its last third, where --state-store is a "
        "directory or Redis, those that still run end with a state from which another server goes "
        "on. A second signal ends both waits. The status is 0, or 1 where requests were cut.\n"
        "The admin listener has /health, /ready, /metrics and /version, which the main one has "
        "too, "
        "on a thread and connections of its own: whatever clients do, it answers. There alone, "
        "models are loaded, replaced and unloaded while others are served (POST "
        "/v2/repository/models/NAME/load and .../unload).\n"
        "Encoders were trained with all inputs padded to their longest, and never mask padding, so "
        "--pad-to changes every answer; fewer tokens are faster.",
    .options = {
        {"model", "[NAME=]DIR",
         "a model directory; NAME is its last component by default; may be repeated; with --admin "
         "or --config there may be none, for models can be loaded later",
         "", true},
        {"http", "HOST:PORT", "where HTTP is served; port 0: any free one",
         ServerOptions().http.address},
        {"grpc", "HOST:PORT", "where gRPC is served", ServerOptions().grpc.address},
        {"tls-cert", "FILE",
         "the server's certificate in PEM form, with those between it and its authority behind it: "
         "all listeners then take TLS only (default: plain TCP)"},
        {"tls-key", "FILE", "the private key of the certificate"},
        {"tls-client-ca", "FILE",
         "certificates of authorities: clients need one from them (default: they need none)"},
        {"api-keys", "FILE",
         "JSON with the API keys that callers need, and their limits; 'hippodrome key new' makes "
         "one "
         "(default: everybody may call)"},
        {"cors-origin", "ORIGIN|*",
         "an origin (SCHEME://HOST[:PORT]) whose web pages may read answers; *: all; may be "
         "repeated "
         "(default: none)",
         "", true},
        ConfigOption(),
        {"admin", "HOST:PORT", "where operators ask for health and metrics (default: nowhere)"},
        {"log-level", "error|warning|info|debug",
         "of the lines of JSON on standard error, which say what happens to the server",
         Name(LogOptions().level)},
        {"access-log", "FILE|-",
         "where a line of JSON is written for each call; -: on standard error (default: nowhere)"},
        {"latency-buckets", "LIST",
         "upper bounds, in seconds, of the buckets of all histograms of seconds (default: 23 from "
         "0.0001, doubling)"},
        {"version", "", "print version, commit, compiler and devices, and exit"},
        DeviceOption(),
        WeightsOption(),
        ThreadsOption(),
        PinOption(),
        NumaNodeOption(),
        {"max-sequences", "N", "sequences that run at once, per model",
         std::to_string(GeneratorOptions().max_sequences)},
        {"kv-bytes", "N", "bytes for the keys and values of attention layers, per model",
         std::to_string(GeneratorOptions().key_value_bytes)},
        AttentionWindowOption(),
        H3StateOption(),
        {"state-store", "memory|DIR|redis://HOST:PORT/DATABASE",
         "where states are kept that clients go on from by handle", StateOptions().store},
        {"state-store-bytes", "N",
         "bytes that memory or a directory holds of them; what was used longest ago goes first",
         std::to_string(StateOptions().store_bytes)},
        {"max-state-bytes", "N", "bytes of one state",
         std::to_string(StateOptions().max_state_bytes)},
        {"state-checkpoints", "N",
         "tokens between two checkpoints of a kept state, to which `position` of a request can go "
         "back without taking tokens in again; a multiple of 8, 0: none",
         std::to_string(StateOptions().checkpoint_interval)},
        {"state-key", "FILE",
         "a secret of 32 bytes or more: states are signed with it, and those without its signature "
         "refused"},
        {"state-import", "on|off", "whether states are taken that clients send", "on"},
        {"batch-dir", "DIR",
         "where /v1/files and /v1/batches are kept, of this server alone (default: there are "
         "none)"},
        {"batch-file-bytes", "N",
         "bytes of a file that is sent there, within --max-body-bytes-total",
         std::to_string(BatchStoreOptions().file_bytes)},
        {"batch-dir-bytes", "N", "bytes of all that is kept there",
         std::to_string(BatchStoreOptions().directory_bytes)},
        {"prefix-slots", "N",
         "states of prompts that are kept for prompts that begin alike, per model, beside those of "
         "--max-sequences; 0: none",
         std::to_string(kPrefixSlots)},
        {"prefix-interval", "N", "tokens of a prompt between two of these",
         std::to_string(GeneratorOptions().prefix_interval)},
        SpeculateOption(),
        DraftOption(),
        {"max-queue", "N",
         "requests that wait, or inputs of an encoder, per model (default: " +
             std::to_string(BatcherOptions().max_queue) + ", or " +
             std::to_string(EncodingOptions().max_queue) + " inputs)"},
        {"max-wait", "N", "seconds that a request may wait for room; 0: for ever", "0"},
        {"max-client-share", "X",
         "of a model's slots and key/value pages, what one client may hold while there are others, "
         "and of its queue in any case; a client is an address, or the first 64 bits of one: "
         "behind a proxy, where all come from one, set 1",
         ShareText(BatcherOptions().max_client_share)},
        {"http-max-connections", "N",
         "connections of HTTP at once; more have the longest idle one closed",
         std::to_string(HttpOptions().max_connections)},
        {"http-max-connections-per-address", "N",
         "of these, from one address, or IPv6 network of 64 bits; 0: no limit",
         std::to_string(HttpOptions().max_connections_per_address)},
        {"max-body-bytes-total", "N",
         "bytes for bodies of HTTP requests that are being read, all together",
         std::to_string(HttpOptions().max_body_bytes_total)},
        {"max-stall-ms", "N", "milliseconds that prompts may delay running streams",
         std::to_string(BatcherOptions().max_stall.count())},
        {"pad-to", "N|max|none",
         "tokens that an encoder's inputs are padded to; max: its longest input (default: as its "
         "config.json says, or max)"},
        {"max-batch-tokens", "N", "tokens that an encoder runs at once, padding included",
         std::to_string(EncoderOptions().max_batch_tokens)},
        {"max-batch-delay", "N", "microseconds that an input waits for others",
         std::to_string(EncodingOptions().max_batch_delay.count())},
        {"grpc-max-connections", "N", "gRPC connections; more are closed on arrival",
         std::to_string(GrpcOptions().max_connections)},
        {"grpc-max-connections-per-address", "N",
         "of these, from one address; behind a proxy all come from one: with as many as in all, no "
         "address is barred because it flooded",
         std::to_string(GrpcOptions().max_connections_per_address)},
        {"grpc-max-streams", "N", "calls at once on a gRPC connection",
         std::to_string(GrpcOptions().max_streams)},
        {"grpc-memory-bytes", "N", "bytes that gRPC may buffer, over all connections",
         std::to_string(GrpcOptions().memory_bytes)},
        {"grpc-connection-age", "N",
         "seconds after which a client must connect again, so that balancers can move it; 0: never",
         std::to_string(GrpcOptions().connection_age.count())},
        {"grpc-connection-grace", "N", "seconds for the calls on a connection that is too old",
         std::to_string(GrpcOptions().connection_grace.count())},
        {"drain-delay", "N",
         "seconds that requests are still taken after a signal, for balancers to see it",
         std::to_string(ServerOptions().drain_delay.count())},
        {"grace-seconds", "N", "seconds that running streams have after a signal",
         std::to_string(ServerOptions().grace.count())},
    }};

namespace {

constexpr int64_t kMostTokens = int64_t{1} << 20;  // of a batch

absl::Status ReadEncoderOptions(const CommandLine& line, LoadOptions& load) {
  const std::string pad_to = line.Text("pad-to");
  if (pad_to == "max") {
    load.pad_to_max = true;
  } else if (pad_to == "none") {
    load.encoder.pad_to = 0;
  } else if (line.Has("pad-to")) {
    const absl::StatusOr<int64_t> tokens = line.Integer("pad-to", 1, kMostTokens);
    if (!tokens.ok()) return Usage(Message(tokens.status()) + ", max or none");
    load.encoder.pad_to = *tokens;
  }
  HIPPODROME_ASSIGN_OR_RETURN(load.encoder.max_batch_tokens,
                              line.Integer("max-batch-tokens", 1, kMostTokens));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModelSource> ParseModelSource(const std::string& called, const std::string& text) {
  ModelSource source;
  const size_t equals = text.find('=');
  if (equals != std::string::npos) {
    source = {text.substr(0, equals), text.substr(equals + 1)};
  } else {
    source.directory = text;
    const size_t last = text.find_last_not_of('/');
    const std::string path = text.substr(0, last == std::string::npos ? 0 : last + 1);
    source.name = path.substr(path.find_last_of('/') + 1);
  }
  if (source.name.empty() || source.directory.empty()) {
    return Usage(called + " is '" + text + "', expected [NAME=]DIR");
  }
  const absl::Status named = CheckModelName(source.name);
  if (!named.ok()) return Usage(called + " is '" + text + "': " + Message(named));
  return source;
}

absl::StatusOr<LoadOptions> ReadLoadOptions(const CommandLine& line) {
  LoadOptions load;
  HIPPODROME_ASSIGN_OR_RETURN(load.weights, line.Weights());
  HIPPODROME_ASSIGN_OR_RETURN(load.device, line.Device());
  // The server is placed once, not when its configuration is read again.
  HIPPODROME_ASSIGN_OR_RETURN(const CpuPlacement placement, line.Placement());
  load.cpu.threads = placement.threads;
  GeneratorOptions& generator = load.generator;
  HIPPODROME_ASSIGN_OR_RETURN(generator.max_sequences, line.Integer("max-sequences", 1, 1 << 16));
  HIPPODROME_ASSIGN_OR_RETURN(generator.key_value_bytes,
                              line.Integer("kv-bytes", 0, int64_t{1} << 50));
  HIPPODROME_ASSIGN_OR_RETURN(generator.attention_window, line.AttentionWindow());
  HIPPODROME_ASSIGN_OR_RETURN(generator.h3_state, line.H3State());
  HIPPODROME_ASSIGN_OR_RETURN(generator.prefix_slots, line.Integer("prefix-slots", 0, 1 << 16));
  HIPPODROME_ASSIGN_OR_RETURN(generator.prefix_interval,
                              line.Integer("prefix-interval", 1, int64_t{1} << 30));
  HIPPODROME_RETURN_IF_ERROR(line.CheckDrafts());
  generator.speculate = line.Has("speculate");
  load.draft = line.Text("draft");
  HIPPODROME_RETURN_IF_ERROR(ReadEncoderOptions(line, load));
  return load;
}

namespace {

absl::StatusOr<std::vector<ModelSource>> ReadModels(const CommandLine& line) {
  // They may come later: by the admin listener, or by the file and SIGHUP.
  if (!line.Has("admin") && !line.Has("config")) {
    HIPPODROME_RETURN_IF_ERROR(line.Required("model").status());
  }
  std::vector<ModelSource> models;
  for (const std::string& text : line.All("model")) {
    HIPPODROME_ASSIGN_OR_RETURN(ModelSource source, ParseModelSource(line.Called("model"), text));
    const auto same = [&](const ModelSource& other) { return other.name == source.name; };
    if (std::any_of(models.begin(), models.end(), same)) {
      return Usage(line.Called("model") + ": there are two models named '" + source.name +
                   "'; give one another NAME=");
    }
    models.push_back(std::move(source));
  }
  return models;
}

absl::StatusOr<std::string> ReadAddress(const CommandLine& line, const std::string& name) {
  std::string text = line.Text(name);
  const absl::Status status = ParseAddress(text).status();
  if (!status.ok()) return Usage(line.Called(name) + ": " + Message(status));
  return text;
}

// As browsers send it: a page's address would never match.
absl::Status CheckOrigin(const std::string& called, const std::string& origin) {
  const size_t host = origin.find("://");
  const bool whole = host != std::string::npos && host > 0 && host + 3 < origin.size() &&
                     origin.find_first_of("/?#* ", host + 3) == std::string::npos;
  if (origin == "*" || origin == "null" || whole) return absl::OkStatus();
  return Usage(called + " is '" + origin + "', expected SCHEME://HOST[:PORT] or *");
}

absl::StatusOr<std::vector<std::string>> ReadOrigins(const CommandLine& line) {
  std::vector<std::string> origins = line.All("cors-origin");
  for (const std::string& origin : origins) {
    HIPPODROME_RETURN_IF_ERROR(CheckOrigin(line.Called("cors-origin"), origin));
  }
  return origins;
}

absl::Status ReadGrpcOptions(const CommandLine& line, GrpcOptions& grpc) {
  constexpr int64_t kMost = 1000000;
  HIPPODROME_ASSIGN_OR_RETURN(grpc.address, ReadAddress(line, "grpc"));
  HIPPODROME_ASSIGN_OR_RETURN(grpc.max_connections, line.Integer("grpc-max-connections", 1, kMost));
  HIPPODROME_ASSIGN_OR_RETURN(grpc.max_connections_per_address,
                              line.Integer("grpc-max-connections-per-address", 1, kMost));
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t streams, line.Integer("grpc-max-streams", 1, kMost));
  grpc.max_streams = static_cast<int>(streams);
  HIPPODROME_ASSIGN_OR_RETURN(
      grpc.memory_bytes, line.Integer("grpc-memory-bytes", int64_t{16} << 20, int64_t{1} << 40));
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t age, line.Integer("grpc-connection-age", 0, kMost));
  grpc.connection_age = std::chrono::seconds(age);
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t grace, line.Integer("grpc-connection-grace", 0, kMost));
  grpc.connection_grace = std::chrono::seconds(grace);
  return absl::OkStatus();
}

absl::Status ReadHttpOptions(const CommandLine& line, HttpOptions& http) {
  HIPPODROME_ASSIGN_OR_RETURN(http.address, ReadAddress(line, "http"));
  HIPPODROME_ASSIGN_OR_RETURN(http.max_connections,
                              line.Integer("http-max-connections", 1, 1000000));
  HIPPODROME_ASSIGN_OR_RETURN(http.max_connections_per_address,
                              line.Integer("http-max-connections-per-address", 0, 1000000));
  HIPPODROME_ASSIGN_OR_RETURN(
      http.max_body_bytes_total,
      line.Integer("max-body-bytes-total", http.max_body_bytes, int64_t{1} << 40));
  return absl::OkStatus();
}

absl::StatusOr<StateOptions> ReadStateOptions(const CommandLine& line) {
  constexpr int64_t kMost = int64_t{1} << 50;
  StateOptions states;
  states.store = line.Text("state-store");
  if (states.store.empty()) return Usage(line.Called("state-store") + " is ''");
  HIPPODROME_ASSIGN_OR_RETURN(states.store_bytes, line.Integer("state-store-bytes", 0, kMost));
  HIPPODROME_ASSIGN_OR_RETURN(states.max_state_bytes,
                              line.Integer("max-state-bytes", 1, int64_t{1} << 40));
  HIPPODROME_ASSIGN_OR_RETURN(const std::string import, line.Choice("state-import"));
  states.import = import == "on";
  HIPPODROME_ASSIGN_OR_RETURN(states.checkpoint_interval,
                              line.Integer("state-checkpoints", 0, int64_t{1} << 40));
  if (states.checkpoint_interval % kCaptureTokens != 0) {
    return Usage(line.Called("state-checkpoints") + " is " +
                 std::to_string(states.checkpoint_interval) + ", expected a multiple of " +
                 std::to_string(kCaptureTokens));
  }
  states.key = line.Text("state-key");
  if (line.Has("state-key") && states.key.empty()) return Usage("--state-key is '', expected FILE");
  return states;
}

absl::StatusOr<BatchStoreOptions> ReadBatchOptions(const CommandLine& line) {
  constexpr int64_t kMost = int64_t{1} << 50;
  BatchStoreOptions batches;
  batches.directory = line.Text("batch-dir");
  if (line.Has("batch-dir") && batches.directory.empty()) {
    return Usage(line.Called("batch-dir") + " is '', expected DIR");
  }
  HIPPODROME_ASSIGN_OR_RETURN(batches.file_bytes, line.Integer("batch-file-bytes", 1, kMost));
  HIPPODROME_ASSIGN_OR_RETURN(batches.directory_bytes, line.Integer("batch-dir-bytes", 1, kMost));
  return batches;
}

absl::StatusOr<TlsOptions> ReadTlsOptions(const CommandLine& line) {
  TlsOptions tls{line.Text("tls-cert"), line.Text("tls-key"), line.Text("tls-client-ca")};
  if (tls.certificate.empty() != tls.key.empty()) {
    return Usage("--tls-cert and --tls-key go together: --" +
                 std::string(tls.key.empty() ? "tls-key" : "tls-cert") + " is missing");
  }
  if (!tls.client_ca.empty() && !tls.on()) {
    return Usage("--tls-client-ca needs --tls-cert and --tls-key");
  }
  return tls;
}

absl::Status ReadDraining(const CommandLine& line, ServerOptions& server) {
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t delay, line.Integer("drain-delay", 0, 3600));
  server.drain_delay = std::chrono::seconds(delay);
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t grace, line.Integer("grace-seconds", 0, 3600));
  server.grace = std::chrono::seconds(grace);
  return absl::OkStatus();
}

absl::StatusOr<LogOptions> ReadLogOptions(const CommandLine& line) {
  LogOptions log;
  HIPPODROME_ASSIGN_OR_RETURN(const std::string level, line.Choice("log-level"));
  for (const LogLevel known :
       {LogLevel::kError, LogLevel::kWarning, LogLevel::kInfo, LogLevel::kDebug}) {
    if (level == Name(known)) log.level = known;
  }
  log.access_log = line.Text("access-log");
  return log;
}

absl::StatusOr<std::vector<double>> ReadLatencyBuckets(const CommandLine& line) {
  constexpr size_t kMost = 64;
  std::vector<double> bounds;
  if (!line.Has("latency-buckets")) return bounds;
  const std::string text = line.Text("latency-buckets");
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    double bound = 0;
    const bool number = absl::SimpleAtod(part, &bound) && std::isfinite(bound) && bound > 0;
    if (!number || (!bounds.empty() && bound <= bounds.back()) || bounds.size() == kMost) {
      return Usage(line.Called("latency-buckets") + " is '" + text + "', expected 1 to " +
                   std::to_string(kMost) + " numbers of seconds above 0, ascending, with commas");
    }
    bounds.push_back(bound);
  }
  return bounds;
}

absl::StatusOr<ServerOptions> ReadServerOptions(const CommandLine& line) {
  ServerOptions server;
  HIPPODROME_ASSIGN_OR_RETURN(server.tls, ReadTlsOptions(line));
  HIPPODROME_ASSIGN_OR_RETURN(server.log, ReadLogOptions(line));
  HIPPODROME_ASSIGN_OR_RETURN(server.latency_buckets, ReadLatencyBuckets(line));
  server.api_keys = line.Text("api-keys");
  if (line.Has("api-keys") && server.api_keys.empty()) {
    return Usage("--api-keys is '', expected FILE");
  }
  HIPPODROME_RETURN_IF_ERROR(ReadHttpOptions(line, server.http));
  HIPPODROME_RETURN_IF_ERROR(ReadGrpcOptions(line, server.grpc));
  HIPPODROME_ASSIGN_OR_RETURN(server.states, ReadStateOptions(line));
  HIPPODROME_ASSIGN_OR_RETURN(server.batches, ReadBatchOptions(line));
  HIPPODROME_ASSIGN_OR_RETURN(server.http.cors_origins, ReadOrigins(line));
  if (line.Has("admin")) {
    HIPPODROME_ASSIGN_OR_RETURN(server.admin_address, ReadAddress(line, "admin"));
  }
  HIPPODROME_ASSIGN_OR_RETURN(server.batcher.max_queue,
                              line.Integer("max-queue", server.batcher.max_queue, 1, 1000000));
  HIPPODROME_ASSIGN_OR_RETURN(server.encoding.max_queue,
                              line.Integer("max-queue", server.encoding.max_queue, 1, 1000000));
  HIPPODROME_ASSIGN_OR_RETURN(const double wait, line.Number("max-wait", 0, 86400));
  server.batcher.max_wait = std::chrono::milliseconds(std::llround(std::ceil(wait * 1000)));
  server.encoding.max_wait = server.batcher.max_wait;
  HIPPODROME_ASSIGN_OR_RETURN(server.batcher.max_client_share,
                              line.Number("max-client-share", 0, 1));
  server.encoding.max_client_share = server.batcher.max_client_share;
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t delay, line.Integer("max-batch-delay", 0, 1000000));
  server.encoding.max_batch_delay = std::chrono::microseconds(delay);
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t stall, line.Integer("max-stall-ms", 1, 60000));
  server.batcher.max_stall = std::chrono::milliseconds(stall);
  HIPPODROME_RETURN_IF_ERROR(ReadDraining(line, server));
  return server;
}

}  // namespace

absl::StatusOr<ServeOptions> ReadServeOptions(const CommandLine& line) {
  ServeOptions options;
  HIPPODROME_ASSIGN_OR_RETURN(options.load, ReadLoadOptions(line));
  HIPPODROME_ASSIGN_OR_RETURN(options.server, ReadServerOptions(line));
  HIPPODROME_ASSIGN_OR_RETURN(options.server.models, ReadModels(line));
  if (options.load.generator.attention_window > 0 &&
      options.server.states.checkpoint_interval > 0) {
    return Usage(
        "--attention-window drops the rows that earlier positions need: it does not go with "
        "--state-checkpoints");
  }
  return options;
}

}  // namespace hippodrome
