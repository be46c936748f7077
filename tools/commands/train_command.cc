#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "engine/base/status.h"
#include "tools/command_line/command_line.h"
#include "tools/commands/commands.h"
#include "tools/mpi/collectives.h"
#include "tools/mpi/open_communicator.h"
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
        "SIGINT writes a checkpoint first. Processes that mpirun or srun started train it "
        "together.",
    .options = {
        {"config", "FILE", "run file, in JSON (docs/training.md)"},
        {"resume", "", "go on from the newest checkpoint, if there is one"},
    }};

absl::Status TrainOn(Communicator* ranks, const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string config, line.Required("config"));
  auto run = ReadTrainingRun(config);
  HIPPODROME_RETURN_IF_ERROR(ranks == nullptr ? run.status() : Agree(*ranks, run.status()));
  HIPPODROME_ASSIGN_OR_RETURN(const auto session,
                              TrainingSession::Open(*run, line.Has("resume"), ranks));
  HIPPODROME_ASSIGN_OR_RETURN(const bool finished, session->Train());
  if (ranks != nullptr && ranks->rank() > 0) return absl::OkStatus();
  const TrainingPosition& position = session->position();
  const std::string best =
      position.best.has_value() ? ", of step " + std::to_string(position.best->step) : "";
  const std::string message = finished ? "the model is in " + run->output + "/model" + best
                                       : "stopped after step " + std::to_string(position.step) +
                                             "; to go on: hippodrome train --config " + config +
                                             " --resume";
  std::fprintf(stderr, "%s\n", message.c_str());
  return absl::OkStatus();
}

absl::Status RunTrain(const CommandLine& line) {
  HIPPODROME_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> ranks, OpenCommunicator());
  return RunOnRanks(std::move(ranks), [&](Communicator* all) { return TrainOn(all, line); });
}

}  // namespace

int TrainCommand(int argc, char** argv) { return RunCommand(argc, argv, kTrainingSpec, RunTrain); }

}  // namespace hippodrome
