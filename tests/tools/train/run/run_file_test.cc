#include "tools/train/run/run_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/base/status.h"
#include "tests/testing/temporary_directory.h"

namespace hippodrome::run_file_test {
namespace {

using Json = nlohmann::json;

Json CausalRun() {
  return Json::parse(R"({
    "output": "out",
    "model": {"config": {"d_model": 32, "n_layer": 2, "vocab_size": 20}},
    "objective": "causal_lm",
    "data": {"train": "train.txt"},
    "length": 256, "batch": 16, "steps": 100,
    "optimizer": {"rate": 0.0006}
  })");
}

Json ClassificationRun() {
  Json json = CausalRun();
  json["objective"] = "classification";
  json["model"] = {{"from", "pretrained"}, {"positions", 512}};
  json["data"] = {{"train", {"a.tsv", "b.tsv"}},
                  {"valid", "/data/dev.tsv"},
                  {"header", true},
                  {"columns", {{"text", "sentence1"}, {"pair", 3}, {"label", "gold"}}},
                  {"labels", {"no", "yes"}}};
  json["data"]["classes"] = {"false", "true"};
  json["data"]["skip_broken"] = true;
  json["data"]["unlabelled"] = "-";
  json.erase("steps");
  json["epochs"] = 3;
  json["evaluate_every"] = 10;
  json["early_stopping"]["patience"] = 2;
  return json;
}

Json SyntheticRun(const char* objective) {
  Json json = CausalRun();
  json["objective"] = objective;
  json["data"] = {{"vocabulary", 20}, {"sequence", 30}};
  json.erase("length");
  return json;
}

TrainingRun Parse(const Json& json) {
  auto run = ParseTrainingRun(json.dump(), "/runs");
  EXPECT_TRUE(run.ok()) << run.status();
  return run.ok() ? *run : TrainingRun{};
}

std::string ErrorOf(const Json& json) {
  return Message(ParseTrainingRun(json.dump(), "/runs").status());
}

TEST(RunFileTest, GivesWhatIsLeftOutItsDefault) {
  const TrainingRun run = Parse(CausalRun());
  EXPECT_EQ(run.objective, Objective::kCausalLm);
  EXPECT_EQ(run.output, "/runs/out");
  EXPECT_EQ(Json::parse(run.model.config)["d_model"], 32);
  EXPECT_THAT(run.data.train, testing::ElementsAre("/runs/train.txt"));
  EXPECT_TRUE(run.data.valid.empty());
  EXPECT_EQ(run.length, 256);
  EXPECT_EQ(run.micro_batch, 16);
  EXPECT_EQ(run.steps, 100);
  EXPECT_EQ(run.epochs, 0);
  EXPECT_EQ(run.optimizer.rate, 0.0006);
  EXPECT_EQ(run.optimizer.beta2, 0.999);
  EXPECT_FALSE(run.optimizer.ssm_rate.has_value());
  EXPECT_FALSE(run.optimizer.no_decay.has_value());
  EXPECT_EQ(run.schedule.kind, ScheduleKind::kConstant);
  EXPECT_EQ(run.dropout.embedding, 0);
  EXPECT_EQ(run.dropout.attention, 0);
  EXPECT_EQ(run.initialization.measure, "diag-lin");
  EXPECT_EQ(run.weights, DType::kF32);
  EXPECT_EQ(run.device, DeviceChoice::kAuto);
  EXPECT_EQ(run.devices, 0);
}

TEST(RunFileTest, ReadsWhatIsThere) {
  Json json = ClassificationRun();
  json["micro_batch"] = 4;
  json["optimizer"] = {{"rate", 2e-5},     {"beta1", 0.8},        {"beta2", 0.98},
                       {"epsilon", 1e-6},  {"weight_decay", 0.1}, {"clip", 1},
                       {"ssm_rate", 1e-4}, {"ssm_decay", true},   {"no_decay", {"bias"}}};
  json["schedule"] = {{"kind", "cosine"}, {"warmup", 10}, {"floor", 0.1}, {"warmup_from", 1e-6}};
  json["dropout"] = {{"embedding", 0.1}, {"attention", 0.3}, {"head", 0.2}, {"tokens", 0.4}};
  json["initialization"] = {{"measure", "diag-inv"}, {"range", 0.01}, {"scaling", "lin"}};
  json["weights"] = "bf16";
  json["device"] = "cpu";
  json["threads"] = 2;
  json["devices"] = 2;
  json["seed"] = 7;
  const TrainingRun run = Parse(json);
  EXPECT_EQ(run.model.from, "/runs/pretrained");
  EXPECT_EQ(run.model.positions, 512);
  EXPECT_THAT(run.data.train, testing::ElementsAre("/runs/a.tsv", "/runs/b.tsv"));
  EXPECT_THAT(run.data.valid, testing::ElementsAre("/data/dev.tsv"));
  EXPECT_EQ(run.data.text, DataColumn("sentence1"));
  EXPECT_EQ(run.data.pair, DataColumn(int64_t{3}));
  EXPECT_EQ(run.data.label, DataColumn("gold"));
  EXPECT_THAT(run.data.labels, testing::ElementsAre("no", "yes"));
  EXPECT_THAT(run.data.classes, testing::ElementsAre("false", "true"));
  EXPECT_TRUE(run.data.skip_broken);
  EXPECT_EQ(run.data.unlabelled, "-");
  EXPECT_EQ(run.patience, 2);
  EXPECT_EQ(run.epochs, 3);
  EXPECT_EQ(run.micro_batch, 4);
  EXPECT_EQ(run.devices, 2);
  EXPECT_EQ(run.optimizer.clip, 1);
  EXPECT_EQ(run.optimizer.ssm_rate, 1e-4);
  EXPECT_TRUE(run.optimizer.no_decay->biases);
  EXPECT_FALSE(run.optimizer.no_decay->norms);
  EXPECT_EQ(run.schedule.warmup_from, 1e-6);
  EXPECT_EQ(run.dropout.attention, 0.3);
  EXPECT_EQ(run.dropout.head, 0.2);
  EXPECT_EQ(run.dropout.tokens, 0.4);
  EXPECT_EQ(run.initialization.scaling, "lin");
  EXPECT_EQ(run.weights, DType::kBF16);
  EXPECT_EQ(run.seed, 7u);
}

TEST(RunFileTest, SyntheticTasksTellTheirLength) {
  const TrainingRun induction = Parse(SyntheticRun("induction_head"));
  EXPECT_EQ(induction.data.vocabulary, 20);
  EXPECT_EQ(induction.length, 31);
  EXPECT_EQ(Parse(SyntheticRun("associative_recall")).length, 32);
}

TEST(RunFileTest, AnUnknownFieldIsAnErrorWhereverItStands) {
  const char* paths[] = {"/stepz",        "/model/confg",  "/initialization/rang", "/data/tran",
                         "/data/columns", "/optimizer/lr", "/schedule/warm",       "/dropout/all",
                         "/data/labels",  "/data/sequence"};
  for (const char* path : paths) {
    Json json = CausalRun();
    json[Json::json_pointer(path)] = 1;
    const std::string name = Json::json_pointer(path).back();
    EXPECT_THAT(ErrorOf(json), testing::HasSubstr(name + " is unknown here, expected one of"));
  }
}

TEST(RunFileTest, ErrorsNameFieldValueAndWhatWasExpected) {
  struct Case {
    const char* path;
    Json value;
    const char* error;
  };
  const Case cases[] = {
      {"/output", nullptr, "output is missing, expected a directory"},
      {"/objective", "chess", "objective is \"chess\", expected \"causal_lm\", \"masked_lm\", "},
      {"/objective", nullptr, "objective is missing, expected"},
      {"/model", nullptr, "model.config is missing, expected an object, or model.from"},
      {"/model", 3, "model is 3, expected an object"},
      {"/model/positions", 3, "model.positions is unknown here"},
      {"/initialization/measure", "legs", "expected \"diag-lin\", \"diag-inv\""},
      {"/initialization/range", 2, "initialization.range is 2, expected a number in (0, 1]"},
      {"/data/train", Json::array(), "data.train is [], expected a string or an array of strings"},
      {"/data/train", nullptr, "data.train is missing, expected a file"},
      {"/length", 0, "length is 0, expected an integer in [1, 1048576]"},
      {"/batch", 2.5, "batch is 2.5, expected an integer"},
      {"/micro_batch", 5, "micro_batch is 5, expected a divisor of batch 16"},
      {"/micro_batch", 32, "micro_batch is 32, expected an integer in [1, 16]"},
      {"/steps", nullptr, "steps is missing, expected an integer"},
      {"/epochs", 2, "epochs is 2, expected either steps or epochs, not both"},
      {"/optimizer", nullptr, "optimizer.rate is missing, expected a number in (0, 100]"},
      {"/optimizer/rate", -1, "optimizer.rate is -1, expected a number in (0, 100]"},
      {"/optimizer/beta1", 1, "optimizer.beta1 is 1, expected a number in [0, 1)"},
      {"/optimizer/clip", -1, "optimizer.clip is -1, expected a number in [0, "},
      {"/optimizer/no_decay", {"all"}, "optimizer.no_decay is [\"all\"], expected \"bias\" and"},
      {"/schedule/kind", "step", "schedule.kind is \"step\", expected \"constant\", \"linear\""},
      {"/schedule/warmup", 101, "schedule.warmup is 101, expected an integer in [0, 100]"},
      {"/schedule/floor", 1.5, "schedule.floor is 1.5, expected a number in [0, 1]"},
      {"/dropout/head", 1, "dropout.head is 1, expected a number in [0, 1)"},
      {"/dropout/tokens", 0.1, "dropout.tokens is 0.1, expected 0 but for classification"},
      {"/weights", "f16", "weights is \"f16\", expected \"f32\" or \"bf16\""},
      {"/device", "tpu", "device is \"tpu\", expected \"auto\", \"cpu\" or \"cuda\""},
      {"/devices", 2, "devices is 2, expected at most 1, one for each micro-batch of a batch"},
      {"/log_every", 0, "log_every is 0, expected an integer in [1, "},
      {"/recompute", 1, "recompute is 1, expected true or false"},
  };
  for (const Case& wrong : cases) {
    Json json = CausalRun();
    json[Json::json_pointer(wrong.path)] = wrong.value;
    EXPECT_THAT(ErrorOf(json), testing::HasSubstr(wrong.error));
  }
}

TEST(RunFileTest, AColumnByNameNeedsAHeader) {
  Json json = ClassificationRun();
  json["data"]["header"] = false;
  EXPECT_THAT(ErrorOf(json), testing::HasSubstr("data.columns.text is \"sentence1\", expected an "
                                                "integer, or data.header to be true"));
}

TEST(RunFileTest, ItsTextGivesItAgain) {
  for (const Json& json : {CausalRun(), ClassificationRun(), SyntheticRun("induction_head")}) {
    const std::string text = ToJson(Parse(json));
    const auto again = ParseTrainingRun(text, "/elsewhere");
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(ToJson(*again), text);
  }
}

TEST(RunFileTest, TheFingerprintIsOfWhatBearsOnTheResult) {
  const std::string fingerprint = Parse(CausalRun()).fingerprint;
  Json json = CausalRun();
  json["output"] = "elsewhere";
  json["threads"] = 7;
  json["devices"] = 1;
  json["checkpoint_every"] = 3;
  EXPECT_EQ(Parse(json).fingerprint, fingerprint);
  json["seed"] = 1;
  EXPECT_NE(Parse(json).fingerprint, fingerprint);
}

TEST(RunFileTest, HowOftenToEvaluateBearsOnTheResultOfEarlyStopping) {
  Json json = CausalRun();
  json["evaluate_every"] = 7;
  EXPECT_EQ(Parse(json).fingerprint, Parse(CausalRun()).fingerprint);
  json = ClassificationRun();
  json["evaluate_every"] = 7;
  EXPECT_NE(Parse(json).fingerprint, Parse(ClassificationRun()).fingerprint);
}

TEST(RunFileTest, EarlyStoppingNeedsEvaluationsOfTheModelItself) {
  Json json = ClassificationRun();
  json["early_stopping"]["patience"] = 0;
  EXPECT_THAT(ErrorOf(json), testing::HasSubstr("early_stopping.patience is 0, expected"));
  json = ClassificationRun();
  json["early_stopping"]["patients"] = 3;
  EXPECT_THAT(ErrorOf(json), testing::HasSubstr("patients"));
  json = ClassificationRun();
  json.erase("evaluate_every");
  EXPECT_THAT(ErrorOf(json), testing::HasSubstr("expected 1 or more, for early_stopping"));
  json = ClassificationRun();
  json["data"].erase("valid");
  EXPECT_THAT(ErrorOf(json), testing::HasSubstr("expected nothing without data.valid"));
  json = ClassificationRun();
  json["optimizer"]["ema"] = 0.9;
  EXPECT_THAT(ErrorOf(json), testing::HasSubstr("expected nothing with optimizer.ema"));
}

TEST(RunFileTest, ClassesAreAsManyAsLabels) {
  Json json = ClassificationRun();
  json["data"]["classes"] = {"one"};
  EXPECT_THAT(ErrorOf(json), testing::HasSubstr("data.classes is [\"one\"], expected as many"));
}

TEST(RunFileTest, PathsAreRelativeToTheFile) {
  const TemporaryDirectory directory;
  const std::string path = directory.Write("run.json", CausalRun().dump());
  const auto run = ReadTrainingRun(path);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->output, directory.File("out"));
  EXPECT_EQ(ReadTrainingRun(directory.File("none.json")).status().code(),
            absl::StatusCode::kNotFound);
  const std::string damaged = directory.Write("damaged.json", "{\"output\": ");
  EXPECT_THAT(Message(ReadTrainingRun(damaged).status()),
              testing::StartsWith(damaged + ": not JSON"));
}

}  // namespace
}  // namespace hippodrome::run_file_test
