#include "tools/commands/serve_options.h"

#include <algorithm>
#include <utility>

#include "engine/base/status.h"
#include "server/address.h"

namespace hippodrome {

const CommandSpec kServeSpec = {
    .usage =
        "usage: hippodrome serve --model [NAME=]DIR ... [options]\n"
        "  --model [NAME=]DIR   a model directory; NAME defaults to its last component; "
        "repeatable\n"
        "  --http HOST:PORT     default 127.0.0.1:8080; port 0: any free one\n"
        "  --grpc HOST:PORT     default 127.0.0.1:50051\n"
        "  --device DEVICE      auto (default), cpu or cuda\n"
        "  --weights DTYPE      f32 or bf16; default: as stored\n"
        "  --threads N          that do arithmetic; default: one per core\n"
        "  --max-sequences N    that run at once, per model; default 64\n"
        "  --kv-bytes N         for the keys and values of attention layers, per model; "
        "default 1 GiB\n"
        "  --max-queue N        requests that wait, per model; default 256, or 4096 inputs of an\n"
        "                       encoder\n"
        "  --max-stall-ms N     that prompts may delay running streams; default 50\n"
        "  --pad-to N|max|none  tokens that an encoder's inputs are padded to; default: pad_to of\n"
        "                       its config.json, or max. These models never mask padding, so it\n"
        "                       changes every answer: they were trained with all inputs padded\n"
        "                       to max, their longest input. Fewer tokens are faster\n"
        "  --max-batch-tokens N that an encoder runs at once, padding included; default 4096\n"
        "  --max-batch-delay N  microseconds that an input waits for others; default 500\n"
        "  --grace-seconds N    for running streams after SIGTERM; default 30",
    .values = {"model", "http", "grpc", "device", "weights", "threads", "max-sequences", "kv-bytes",
               "max-queue", "max-stall-ms", "pad-to", "max-batch-tokens", "max-batch-delay",
               "grace-seconds"}};

namespace {

constexpr int64_t kMostTokens = int64_t{1} << 20;  // of a batch

absl::StatusOr<ModelSource> ParseModel(const std::string& text) {
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
    return Usage("--model is '" + text + "', expected [NAME=]DIR");
  }
  return source;
}

absl::StatusOr<std::vector<ModelSource>> ReadModels(const CommandLine& line) {
  HIPPODROME_RETURN_IF_ERROR(line.Required("model").status());
  std::vector<ModelSource> models;
  for (const std::string& text : line.All("model")) {
    HIPPODROME_ASSIGN_OR_RETURN(ModelSource source, ParseModel(text));
    const auto same = [&](const ModelSource& other) { return other.name == source.name; };
    if (std::any_of(models.begin(), models.end(), same)) {
      return Usage("--model: there are two models named '" + source.name +
                   "'; give one another NAME=");
    }
    models.push_back(std::move(source));
  }
  return models;
}

absl::StatusOr<std::string> ReadAddress(const CommandLine& line, const std::string& name,
                                        const std::string& fallback) {
  std::string text = line.Text(name, fallback);
  const absl::Status status = ParseAddress(text).status();
  if (!status.ok()) return Usage("--" + name + ": " + Message(status));
  return text;
}

absl::Status ReadEncoderOptions(const CommandLine& line, LoadOptions& load) {
  const std::string pad_to = line.Text("pad-to", "");
  if (pad_to == "max") {
    load.pad_to_max = true;
  } else if (pad_to == "none") {
    load.encoder.pad_to = 0;
  } else if (line.Has("pad-to")) {
    const absl::StatusOr<int64_t> tokens = line.Integer("pad-to", 0, 1, kMostTokens);
    if (!tokens.ok()) return Usage(Message(tokens.status()) + ", max or none");
    load.encoder.pad_to = *tokens;
  }
  HIPPODROME_ASSIGN_OR_RETURN(
      load.encoder.max_batch_tokens,
      line.Integer("max-batch-tokens", load.encoder.max_batch_tokens, 1, kMostTokens));
  return absl::OkStatus();
}

absl::StatusOr<LoadOptions> ReadLoadOptions(const CommandLine& line) {
  LoadOptions load;
  HIPPODROME_ASSIGN_OR_RETURN(load.weights, line.Weights());
  HIPPODROME_ASSIGN_OR_RETURN(load.device, line.Device());
  HIPPODROME_ASSIGN_OR_RETURN(load.cpu.threads, line.Threads());
  GeneratorOptions& generator = load.generator;
  HIPPODROME_ASSIGN_OR_RETURN(generator.max_sequences,
                              line.Integer("max-sequences", generator.max_sequences, 1, 1 << 16));
  HIPPODROME_ASSIGN_OR_RETURN(
      generator.key_value_bytes,
      line.Integer("kv-bytes", generator.key_value_bytes, 0, int64_t{1} << 50));
  HIPPODROME_RETURN_IF_ERROR(ReadEncoderOptions(line, load));
  return load;
}

absl::StatusOr<ServerOptions> ReadServerOptions(const CommandLine& line) {
  ServerOptions server;
  HIPPODROME_ASSIGN_OR_RETURN(server.http.address, ReadAddress(line, "http", server.http.address));
  HIPPODROME_ASSIGN_OR_RETURN(server.grpc.address, ReadAddress(line, "grpc", server.grpc.address));
  HIPPODROME_ASSIGN_OR_RETURN(server.batcher.max_queue,
                              line.Integer("max-queue", server.batcher.max_queue, 1, 1000000));
  HIPPODROME_ASSIGN_OR_RETURN(server.encoding.max_queue,
                              line.Integer("max-queue", server.encoding.max_queue, 1, 1000000));
  HIPPODROME_ASSIGN_OR_RETURN(
      const int64_t delay,
      line.Integer("max-batch-delay", server.encoding.max_batch_delay.count(), 0, 1000000));
  server.encoding.max_batch_delay = std::chrono::microseconds(delay);
  HIPPODROME_ASSIGN_OR_RETURN(
      const int64_t stall,
      line.Integer("max-stall-ms", server.batcher.max_stall.count(), 1, 60000));
  server.batcher.max_stall = std::chrono::milliseconds(stall);
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t grace,
                              line.Integer("grace-seconds", server.grace.count(), 0, 3600));
  server.grace = std::chrono::seconds(grace);
  return server;
}

}  // namespace

absl::StatusOr<ServeOptions> ReadServeOptions(const CommandLine& line) {
  ServeOptions options;
  HIPPODROME_ASSIGN_OR_RETURN(options.models, ReadModels(line));
  HIPPODROME_ASSIGN_OR_RETURN(options.load, ReadLoadOptions(line));
  HIPPODROME_ASSIGN_OR_RETURN(options.server, ReadServerOptions(line));
  return options;
}

}  // namespace hippodrome
