// SPDX-License-Identifier: GPL-2.0
/*
 * Blocks through a socket from one CPU to another: the kernel allocates their
 * buffers on the first and frees them on the second, as it does for a network. No
 * thread sleeps, so that the scheduler has no part in it; none maps memory.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "arch.h"
#include "cpus.h"
#include "region.h"
#include "result.h"

#define NR_BLOCKS	1024

enum turn { WRITER, READER, NOBODY };

/* Both ends of a socket, and whose turn it is. */
struct channel {
	int end, far_end;
	size_t block;
	char *data, *received;
	unsigned int reader_cpu;	/* as cpus_pin() has it */
	enum turn turn;			/* accessed as atomic */
	int error;			/* the reader's errno */
};

/* Waits on the CPU. */
static enum turn wait_while(const struct channel *channel, enum turn turn)
{
	enum turn now;

	while ((now = __atomic_load_n(&channel->turn, __ATOMIC_ACQUIRE)) == turn)
		cpu_relax();
	return now;
}

static void pass_turn(struct channel *channel, enum turn turn)
{
	__atomic_store_n(&channel->turn, turn, __ATOMIC_RELEASE);
}

/* 0, or errno: EAGAIN if the socket has no room. */
static int send_block(const struct channel *channel)
{
	ssize_t size = send(channel->end, channel->data, channel->block,
			    MSG_DONTWAIT);

	if (size < 0)
		return errno;
	return (size_t)size == channel->block ? 0 : EAGAIN;
}

static int receive_block(const struct channel *channel)
{
	size_t left = channel->block;

	while (left) {
		ssize_t size = recv(channel->far_end, channel->received, left,
				    MSG_DONTWAIT);

		if (size <= 0)
			return size ? errno : EPIPE;
		left -= size;
	}
	return 0;
}

static void *receive_all(void *arg)
{
	struct channel *channel = arg;

	cpus_pin(channel->reader_cpu);
	while (wait_while(channel, WRITER) == READER) {
		if (!channel->error)
			channel->error = receive_block(channel);
		pass_turn(channel, WRITER);
	}
	return NULL;
}

/* Alone, the writer reads what it wrote. */
static int transfer_block(struct channel *channel)
{
	int error = send_block(channel);

	if (error)
		return error;
	if (!channel->reader_cpu)
		return receive_block(channel);
	pass_turn(channel, READER);
	wait_while(channel, READER);
	return channel->error;
}

/* Not inline: a region has one end. */
static noinline int transfer_all(struct channel *channel)
{
	int error = 0;

	for (int block = 0; block < NR_BLOCKS && !error; block++)
		error = transfer_block(channel);
	return error;
}

static enum status send_in_region(struct run *run, struct channel *channel)
{
	int error = transfer_all(channel);	/* the first time: nothing is warm */

	if (!error) {
		region_begin(run, "socket");
		marker_begin();
		error = transfer_all(channel);
		marker_end();
		region_end(run);
	}
	if (error == EAGAIN)
		return refuse(run, "--block %zu: the socket has less room: give a smaller one",
			      channel->block);
	if (error)
		return wrong(run, "the socket: %s", strerror(error));
	result_add(run, "operations", NR_BLOCKS);
	region_report(run);
	return STATUS_OK;
}

static enum status with_reader(struct run *run, struct channel *channel)
{
	enum status status;
	pthread_t reader;
	int error;

	if (!channel->reader_cpu)
		return send_in_region(run, channel);
	error = pthread_create(&reader, NULL, receive_all, channel);
	if (error)
		return wrong(run, "starting a thread: %s", strerror(error));
	/* Only now: a thread begins with the CPUs of the one that starts it. */
	cpus_pin(0);
	status = send_in_region(run, channel);
	pass_turn(channel, NOBODY);
	pthread_join(reader, NULL);
	return status;
}

static enum status measure(struct run *run)
{
	struct channel channel = {
		.block = param_number(run, "block"),
		.reader_cpu = param_number(run, "cpus") - 1,
	};
	enum status status = cpus_keep_to(run);
	int ends[2];

	if (status)
		return status;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) {
		if (errno == EAFNOSUPPORT)
			return result_unavailable(run,
						  "no local sockets: build the kernel with CONFIG_UNIX");
		return wrong(run, "socketpair: %s", strerror(errno));
	}
	channel.end = ends[0];
	channel.far_end = ends[1];
	channel.data = calloc(2, channel.block);
	if (channel.data) {
		/* Present, so that no page fault is measured. */
		memset(channel.data, 1, 2 * channel.block);
		channel.received = channel.data + channel.block;
		status = with_reader(run, &channel);
		free(channel.data);
	} else {
		status = wrong(run, "the blocks: %s", strerror(ENOMEM));
	}
	close(channel.end);
	close(channel.far_end);
	return status;
}

static const struct param params[] = {
	{
		.name = "block", .help = "bytes of a write",
		.type = PARAM_SIZE, .def = "65536", .min = 1, .max = 16777216,
	},
	CPUS_PARAM("1: a thread writes and reads; more: another reads, on the last"),
	{ }
};

static const struct metric metrics[] = {
	{ "operations", "operations", "blocks that were written and read" },
	{ }
};

static const struct experiment socket_experiment = {
	.name = "socket",
	.summary = "blocks through a local socket, from one CPU to another",
	.detail =
"A thread writes 1,024 blocks into a socket of AF_UNIX, and each is read before the next\n"
"one is written: by the same thread, or by another on another CPU. The buffers are\n"
"allocated where the writer is, and freed where the reader is. Both wait by looking, so\n"
"that neither sleeps.",
	.example = "--block 64K --cpus 2",
	.params = params,
	.metrics = metrics,
	.measure = measure,
};

EXPERIMENT(socket_experiment);
