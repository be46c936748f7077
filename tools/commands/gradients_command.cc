#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/checkpoint/parameter_weights.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/config/bigs_config.h"
#include "engine/open_backend.h"
#include "kernels/tape/tape.h"
#include "tools/command_line/command_line.h"
#include "tools/command_line/forward_input.h"
#include "tools/commands/commands.h"
#include "tools/train/step/decoder_trainee.h"
#include "tools/train/step/encoder_trainee.h"
#include "tools/train/step/gradient_input.h"
#include "tools/train/step/trained_names.h"

namespace hippodrome {
namespace {

const CommandSpec kGradientsSpec = {
    .name = "gradients",
    .summary = "Writes a loss and its gradients, to check training.",
    .usage = {"--model DIR --input FILE --output FILE [OPTION]..."},
    .description =
        "Reads input_ids I64 [B, L] and labels I64 [B, L] (-100: ignored; for language models what "
        "should follow each position, by default the next id), and for encoders attention_mask and "
        "token_type_ids; labels [B] for classification (F32 for regression), start_positions and "
        "end_positions I64 [B] for question answering.\n"
        "Writes loss F32, the mean, and d loss / d parameter F32 under the name of every parameter "
        "that is trained.",
    .options = {ModelOption(),
                InputOption(),
                OutputOption(),
                {"weights", "f32|bf16", "type of the matrices", "f32"},
                DeviceOption(),
                ThreadsOption(),
                PinOption(),
                NumaNodeOption()}};

// What the command line says.
struct Request {
  std::string directory, input, output;
  DType weights = DType::kF32;
  std::unique_ptr<TrainingBackend> backend;
};

absl::Status Write(Parameters& parameters, TrainingBackend& backend, double loss,
                   const std::string& path) {
  std::vector<TensorSpec> specs = {{.name = "loss", .dtype = DType::kF32, .shape = {}}};
  std::vector<Tensor> gradients;
  for (const Parameter& parameter : parameters.all()) {
    if (parameter.gradient.data == nullptr || !IsTrained(parameter.name)) continue;
    specs.push_back({.name = parameter.name, .dtype = DType::kF32, .shape = parameter.shape});
    gradients.push_back(parameter.gradient);
  }
  HIPPODROME_ASSIGN_OR_RETURN(const auto writer, SafetensorsWriter::Create(path, specs));
  const auto rounded = static_cast<float>(loss);
  HIPPODROME_RETURN_IF_ERROR(writer->Append(std::as_bytes(std::span(&rounded, 1))));
  for (const Tensor& gradient : gradients) {
    std::vector<float> values(static_cast<size_t>(gradient.rows * gradient.cols));
    backend.Download(gradient, values);
    HIPPODROME_RETURN_IF_ERROR(writer->Append(std::as_bytes(std::span(values))));
  }
  return writer->Finish();
}

absl::Status Differentiate(const Request& request, const TrainingBatch& batch, Tape& tape,
                           Parameters& parameters, Trainee& trainee) {
  const LossTerms terms = trainee.Terms(batch);
  if (terms.count == 0) return InvalidArgument(request.input + ": labels: all are ignored");
  const BatchLoss loss = trainee.Learn(batch, terms, 0);
  tape.CollectGradients();
  return Write(parameters, *request.backend, loss.mean(), request.output);
}

template <typename Model, typename Config>
absl::Status RunModel(const Request& request, const Config& config, int32_t padding_id) {
  HIPPODROME_ASSIGN_OR_RETURN(const TrainingBatch batch, ReadGradientInput(request.input, config));
  HIPPODROME_ASSIGN_OR_RETURN(const auto file,
                              SafetensorsFile::Open(request.directory + "/model.safetensors"));
  Parameters parameters(*request.backend);
  HIPPODROME_RETURN_IF_ERROR(AddParameters(*file, parameters));
  Tape tape(*request.backend, parameters, {.longest = batch.length, .padding_id = padding_id});
  HIPPODROME_ASSIGN_OR_RETURN(
      const auto trainee, Model::Create(tape, parameters, config, request.weights,
                                        {.sequences = batch.sequences, .length = batch.length}));
  return Differentiate(request, batch, tape, parameters, *trainee);
}

absl::Status RunGradients(const CommandLine& line) {
  Request request;
  HIPPODROME_ASSIGN_OR_RETURN(request.directory, line.Required("model"));
  HIPPODROME_ASSIGN_OR_RETURN(request.input, line.Required("input"));
  HIPPODROME_ASSIGN_OR_RETURN(request.output, line.Required("output"));
  HIPPODROME_ASSIGN_OR_RETURN(const auto weights, line.Weights());
  request.weights = weights.value_or(DType::kF32);
  HIPPODROME_ASSIGN_OR_RETURN(const CpuOptions cpu, line.PlaceThreads());
  HIPPODROME_ASSIGN_OR_RETURN(const DeviceChoice device, line.Device());
  HIPPODROME_ASSIGN_OR_RETURN(request.backend, OpenTrainingBackend(device, cpu));
  HIPPODROME_ASSIGN_OR_RETURN(const ModelFamily family, ReadModelFamily(request.directory));
  if (family == ModelFamily::kBigs) {
    HIPPODROME_ASSIGN_OR_RETURN(const BigsConfig config, ReadBigsConfig(request.directory));
    return RunModel<EncoderTrainee>(request, config, static_cast<int32_t>(config.pad_token_id));
  }
  HIPPODROME_ASSIGN_OR_RETURN(const H3Config config, ReadH3Config(request.directory));
  return RunModel<DecoderTrainee>(request, config, -1);
}

}  // namespace

int GradientsCommand(int argc, char** argv) {
  return RunCommand(argc, argv, kGradientsSpec, RunGradients);
}

}  // namespace hippodrome
