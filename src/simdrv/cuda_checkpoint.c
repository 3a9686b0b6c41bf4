#include "simdrv/cuda_checkpoint.h"

void
sim_checkpoint_follow(struct sim_memory *memory)
{
    memory->moves = sim_ledger_slot(memory->vram, memory->slot)->moves;
}
