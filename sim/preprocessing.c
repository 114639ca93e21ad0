/* preprocessing.c - sample costs, and the workloads (see preprocessing.h).
 *
 * The paper names GR00T, HoloAssist and BEHAVIOR-1K and gives no cost of a sample, no batch size and no core count. What stands
 * here is therefore our own estimate from public properties of those data sets, and every number is marked. Figures that use a
 * workload must be read as sensitivity: where it lies in the map, and how far it would have to move.
 */
#include "sim/preprocessing.h"

#include <math.h>
#include <string.h>

/* Draws of one data rank and step lie together in the stream of the rank. */
#define PRODUCER_STREAMS (UINT64_C(1) << 40) /* entities from here on belong to producers */

static const ls_workload workloads[] = {
    {.name = "gr00t",
     .meaning = "GR00T: robot policy fine-tuning, three camera views of one moment, random access into compressed episodes",
     .source = "samples: Isaac-GR00T's default batch of 32 a GPU; size: 3 views x 224 x 224 x 3 bytes and 18 KB of state, action and text "
               "(224 x 224 is the model's input; three views assumed); expansion 20: assumed, near-lossless H.264/AV1 frames of about 24 KB; "
               "decode: assumed, 30 ms a view for a seek and a few frames of 480p, sigma 0.5, 1 % from 0.4 s on; transform: assumed, 5 ms a view",
     .samples_per_rank = 32, .sample_bytes = 470000, .expansion = 20,
     .decode = {.law = LS_LAW_LOGNORMAL, .scale_s = 0.09, .shape = 0.5, .tail_share = 0.01, .tail_scale_s = 0.4, .tail_shape = 2, .draws = 1},
     .transform_s = 0.015},
    {.name = "holoassist",
     .meaning = "HoloAssist: video fine-tuning, 32 frames spread over a clip of egocentric video",
     .source = "samples: assumed 8 a GPU; size: assumed 32 frames x 384 x 384 x 3 bytes; expansion 300: assumed, 32 frames out of a clip of "
               "about 47 KB a second of video kept; the paper's motivation says up to about 1000; decode: assumed, 25 ms a frame of 896 x 504 "
               "(the data set's size), sigma 0.8 for clip length, 2 % from 4 s on; transform: assumed, 3 ms a frame",
     .samples_per_rank = 8, .sample_bytes = 14155776, .expansion = 300,
     .decode = {.law = LS_LAW_LOGNORMAL, .scale_s = 0.8, .shape = 0.8, .tail_share = 0.02, .tail_scale_s = 4, .tail_shape = 2, .draws = 1},
     .transform_s = 0.1},
    {.name = "behavior-1k",
     .meaning = "BEHAVIOR-1K: household demonstrations, three cameras with colour and depth, a short history of each",
     .source = "samples: assumed 16 a GPU; size: 3 cameras x 4 frames x 224 x 224 x (3 + 2) bytes; expansion 50: assumed; decode: assumed, 6 "
               "streams (720 x 720 head and two 480 x 480 wrist cameras, colour and depth: the data set's) of 30 ms a history of 4 frames, and "
               "the depth's 10-bit decoding, together 0.4 s, sigma 0.6, 1 % from 2 s on; transform: assumed, 4 ms a frame",
     .samples_per_rank = 16, .sample_bytes = 3010560, .expansion = 50,
     .decode = {.law = LS_LAW_LOGNORMAL, .scale_s = 0.4, .shape = 0.6, .tail_share = 0.01, .tail_scale_s = 2, .tail_shape = 2, .draws = 1},
     .transform_s = 0.05},
};

#define WORKLOADS (sizeof workloads / sizeof workloads[0])

const ls_workload *ls_workloads(uint32_t *count)
{
    *count = WORKLOADS;
    return workloads;
}

ls_result ls_preprocessing_prepare(const ls_scenario *s, uint64_t seed, uint64_t replication, ls_preprocessing *p, ls_error *error)
{
    memset(p, 0, sizeof *p);
    ls_workload own = {.samples_per_rank = s->preprocessing.samples_per_rank, .sample_bytes = s->preprocessing.sample_bytes,
                       .expansion = s->preprocessing.expansion, .decode = s->preprocessing.decode,
                       .transform_s = s->preprocessing.transform_s};
    uint32_t choice = s->preprocessing.workload; /* 0: custom */
    const ls_workload *from = choice > 0 && choice <= WORKLOADS ? &workloads[choice - 1] : &own;
    ls_error reason = {""};
    ls_result result = ls_law_prepare(&from->decode, &p->decode, &reason);
    if (result != LS_OK) return ls_fail(error, result, "preprocessing.decode: %s", reason.text);
    p->decode_factor = s->preprocessing.decode_factor;
    p->transform_s = from->transform_s;
    p->expansion = from->expansion;
    p->samples_per_rank = from->samples_per_rank;
    p->sample_bytes = from->sample_bytes;
    p->data_ranks = s->batches.data_parallel;
    p->slices = s->batches.data_parallel * s->batches.context_parallel;
    p->cores_per_producer = s->preprocessing.cores_per_producer;
    p->seed = seed;
    p->replication = replication;
    return LS_OK;
}

void ls_preprocessing_release(ls_preprocessing *p)
{
    ls_law_release(&p->decode);
}

double ls_preprocessing_mean_s(const ls_preprocessing *p)
{
    return p->decode_factor * ls_law_mean_s(&p->decode) + p->transform_s;
}

/* The cost of `count` samples whose draws begin at a place of an entity's stream. */
static double sum_of(const ls_preprocessing *p, uint64_t entity, uint64_t place, uint64_t count, double *longest_s)
{
    ls_random stream = ls_random_open(p->seed, p->replication, LS_RANDOM_SAMPLES, entity);
    stream.index = place * p->decode.law.draws;
    double sum_s = 0, longest = 0;
    for (uint64_t i = 0; i < count; i++) {
        double cost_s = p->decode_factor * ls_law_draw_s(&p->decode, &stream) + p->transform_s;
        sum_s += cost_s;
        if (cost_s > longest) longest = cost_s;
    }
    if (longest_s != NULL) *longest_s = longest;
    return sum_s;
}

double ls_preprocessing_slice_s(const ls_preprocessing *p, uint64_t data_rank, uint64_t step, double *longest_s)
{
    return sum_of(p, data_rank, step * p->samples_per_rank, p->samples_per_rank, longest_s);
}

double ls_preprocessing_batch_s(const ls_preprocessing *p, uint64_t producer, uint64_t offset)
{
    uint64_t samples = p->samples_per_rank * p->data_ranks;
    double longest_s, sum_s = sum_of(p, PRODUCER_STREAMS + producer, offset * samples, samples, &longest_s);
    double share_s = sum_s / (double)p->cores_per_producer;
    return share_s > longest_s ? share_s : longest_s;
}

uint64_t ls_preprocessing_batch_bytes(const ls_preprocessing *p)
{
    return p->samples_per_rank * p->data_ranks * p->sample_bytes;
}

double ls_preprocessing_stored_bytes(const ls_preprocessing *p)
{
    return (double)p->samples_per_rank * (double)p->sample_bytes / p->expansion;
}
