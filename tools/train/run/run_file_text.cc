// Run files as text.
#include <nlohmann/json.hpp>

#include "tools/train/run/run_file.h"
#include "tools/train/run/run_file_words.h"

namespace hippodrome {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson ModelJson(const StartingModel& model) {
  OrderedJson json = OrderedJson::object();
  if (!model.from.empty()) json["from"] = model.from;
  if (!model.config.empty()) json["config"] = OrderedJson::parse(model.config);
  if (model.positions > 0) json["positions"] = model.positions;
  return json;
}

OrderedJson ColumnsJson(const DataFiles& data) {
  OrderedJson json = OrderedJson::object();
  const auto add = [&](const char* name, const std::optional<DataColumn>& column) {
    if (!column.has_value()) return;
    std::visit([&](const auto& place) { json[name] = place; }, *column);
  };
  add("text", data.text);
  add("pair", data.pair);
  add("label", data.label);
  return json;
}

OrderedJson DataJson(const TrainingRun& run) {
  const DataFiles& data = run.data;
  if (IsSynthetic(run.objective)) {
    return {{"vocabulary", data.vocabulary}, {"sequence", data.sequence}};
  }
  OrderedJson json = {{"train", data.train}};
  if (!data.valid.empty()) json["valid"] = data.valid;
  if (const OrderedJson columns = ColumnsJson(data); !columns.empty()) json["columns"] = columns;
  if (data.header) json["header"] = true;
  if (!data.labels.empty()) json["labels"] = data.labels;
  if (!data.classes.empty()) json["classes"] = data.classes;
  if (data.skip_broken) json["skip_broken"] = true;
  if (!data.unlabelled.empty()) json["unlabelled"] = data.unlabelled;
  return json;
}

OrderedJson OptimizerJson(const OptimizerOptions& options) {
  OrderedJson json = {{"rate", options.rate},
                      {"beta1", options.beta1},
                      {"beta2", options.beta2},
                      {"epsilon", options.epsilon},
                      {"weight_decay", options.weight_decay},
                      {"clip", options.clip}};
  if (options.ssm_rate.has_value()) json["ssm_rate"] = *options.ssm_rate;
  json["ssm_decay"] = options.ssm_decay;
  if (options.no_decay.has_value()) {
    json["no_decay"] = OrderedJson::array();
    if (options.no_decay->biases) json["no_decay"].push_back("bias");
    if (options.no_decay->norms) json["no_decay"].push_back("norm");
  }
  json["ema"] = options.ema;
  return json;
}

OrderedJson ScheduleJson(const Schedule& schedule) {
  return {{"kind", WordOf(kScheduleWords, schedule.kind)},
          {"warmup", schedule.warmup},
          {"warmup_from", schedule.warmup_from},
          {"floor", schedule.floor}};
}

}  // namespace

std::string ToJson(const TrainingRun& run) {
  OrderedJson json = {{"output", run.output},
                      {"model", ModelJson(run.model)},
                      {"initialization",
                       {{"measure", run.initialization.measure},
                        {"range", run.initialization.range},
                        {"scaling", run.initialization.scaling}}},
                      {"objective", Name(run.objective)},
                      {"data", DataJson(run)},
                      {"batch", run.batch},
                      {"micro_batch", run.micro_batch},
                      {"optimizer", OptimizerJson(run.optimizer)},
                      {"schedule", ScheduleJson(run.schedule)},
                      {"dropout",
                       {{"embedding", run.dropout.embedding},
                        {"attention", run.dropout.attention},
                        {"head", run.dropout.head},
                        {"tokens", run.dropout.tokens}}},
                      {"weights", WordOf(kWeightsWords, run.weights)},
                      {"recompute", run.recompute},
                      {"seed", run.seed},
                      {"threads", run.threads},
                      {"device", WordOf(kDeviceWords, run.device)},
                      {"devices", run.devices},
                      {"shard_optimizer", run.shard_optimizer},
                      {"checkpoint_every", run.checkpoint_every},
                      {"evaluate_every", run.evaluate_every},
                      {"log_every", run.log_every}};
  if (!run.tokenizer.empty()) json["tokenizer"] = run.tokenizer;
  if (!IsSynthetic(run.objective)) json["length"] = run.length;
  if (run.patience > 0) json["early_stopping"]["patience"] = run.patience;
  run.epochs > 0 ? json["epochs"] = run.epochs : json["steps"] = run.steps;
  return json.dump(1);
}

}  // namespace hippodrome
