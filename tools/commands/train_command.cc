#include <cstdio>
#include <string>

#include "engine/base/status.h"
#include "tools/command_line/command_line.h"
#include "tools/commands/commands.h"
#include "tools/train/run/run_file.h"
#include "tools/train/session/training_session.h"

namespace hippodrome {
namespace {

const CommandSpec kTrainingSpec = {
    .name = "train",
    .summary = "Trains a model as a run file says.",
    .usage = {"--config FILE [--resume]"},
    .description =
        "The output folder, which the run file names, gets metrics.jsonl, checkpoints/, and at the "
        "end loss.svg and model/, which serve and eval load. A run that is stopped by SIGTERM or "
        "SIGINT writes a checkpoint first.",
    .options = {
        {"config", "FILE", "run file, in JSON (docs/training.md)"},
        {"resume", "", "go on from the newest checkpoint, if there is one"},
    }};

absl::Status RunTrain(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string config, line.Required("config"));
  HIPPODROME_ASSIGN_OR_RETURN(const TrainingRun run, ReadTrainingRun(config));
  HIPPODROME_ASSIGN_OR_RETURN(const auto session, TrainingSession::Open(run, line.Has("resume")));
  HIPPODROME_ASSIGN_OR_RETURN(const bool finished, session->Train());
  const std::string message =
      finished ? "the model is in " + run.output + "/model"
               : "stopped after step " + std::to_string(session->steps_done()) +
                     "; to go on: hippodrome train --config " + config + " --resume";
  std::fprintf(stderr, "%s\n", message.c_str());
  return absl::OkStatus();
}

}  // namespace

int TrainCommand(int argc, char** argv) { return RunCommand(argc, argv, kTrainingSpec, RunTrain); }

}  // namespace hippodrome
