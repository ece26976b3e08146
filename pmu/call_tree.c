// SPDX-License-Identifier: GPL-2.0
#include "call_tree.h"

#include <stdlib.h>
#include <string.h>

#include "functions.h"
#include "memory.h"

void call_tree_init(struct call_tree *tree)
{
	tree->user.function = FUNCTION_USER;
	tree->task.function = FUNCTION_TASK;
}

struct call_node *call_tree_child(struct call_node *parent, unsigned int function,
				  enum entered entered)
{
	struct call_node **link = &parent->child, *node;

	for (; (node = *link); link = &node->sibling)
		if (node->function == function && node->entered == entered)
			break;
	if (node) {
		*link = node->sibling;
	} else {
		node = must_have(calloc(1, sizeof(*node)));
		node->parent = parent;
		node->function = function;
		node->entered = entered;
	}
	/* To the front: what was called last is often called next. */
	node->sibling = parent->child;
	parent->child = node;
	node->own[OWN_ENTRIES]++;
	return node;
}

/* The node after @node, parents before their children; NULL behind the last one. */
static struct call_node *next_node(struct call_tree *tree, struct call_node *node)
{
	if (node->child)
		return node->child;
	while (node->parent && !node->sibling)
		node = node->parent;
	if (node->parent)
		return node->sibling;
	return node == &tree->user ? &tree->task : NULL;
}

void call_tree_restart(struct call_tree *tree)
{
	for (struct call_node *n = &tree->user; n; n = next_node(tree, n))
		memset(n->own, 0, sizeof(n->own));
}

static bool has_own(const struct call_node *node)
{
	for (int i = 0; i < NR_OWN; i++)
		if (node->own[i])
			return true;
	return false;
}

/* Marks the nodes that get a row; returns how many. */
static unsigned int choose_rows(struct call_tree *tree)
{
	unsigned int nr = 0;

	for (struct call_node *n = &tree->user; n; n = next_node(tree, n)) {
		n->row = NO_ROW;
		if (!has_own(n))
			continue;
		for (struct call_node *up = n; up && up->row == NO_ROW; up = up->parent) {
			up->row = 0;
			nr++;
		}
	}
	return nr;
}

struct call_row *call_tree_take(struct call_tree *tree, unsigned int *nr)
{
	unsigned int done = 0;
	struct call_row *rows;

	*nr = choose_rows(tree);
	rows = must_have(calloc(*nr + 1, sizeof(*rows)));
	for (struct call_node *n = &tree->user; n; n = next_node(tree, n)) {
		if (n->row == NO_ROW)
			continue;
		n->row = done;
		rows[done].parent = n->parent ? n->parent->row : done;
		rows[done].function = n->function;
		rows[done].entered = n->entered;
		memcpy(rows[done++].own, n->own, sizeof(n->own));
	}
	return rows;
}
